#include "csv_row.h"

#include <stdlib.h>
#include <string.h>

#include "csv_field.h"
#include "data_source.h"
#include "num.h"

#define COLUMNS_MAX (1u << 20)

static bool
blank(const char *text)
{
	return text[strspn(text, " \t")] == '\0';
}

enum err
csv_row_fault(const struct csv_row *c, size_t column, const char *what)
{
	return err_set(c->why, ERR_INVALID, "line %llu, column %zu: %s",
	    (unsigned long long)c->line_number, column + 1, what);
}

bool
csv_row_missing(const char *field)
{
	static const char *const words[] = {"NA", "N/A", "NaN", "nan", "null", "NULL", "?"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(field, words[i]) == 0)
			return true;
	return !*field;
}

/* Where in a row: at the start of a field, in one without quotes, between quotes, behind them. */
enum place { PLACE_START, PLACE_PLAIN, PLACE_QUOTED, PLACE_CLOSED };

/* Steps over more of a row, as csv_field_cut would, from a place in it to another. separator 0: not known yet, so any may be one. */
static enum place
walk(enum place at, const char *text, size_t len, char separator)
{
	const char set[] = {',', ';', '\t'};

	for (size_t i = 0; i < len; i++) {
		char c = text[i];
		if (at == PLACE_QUOTED)
			at = c == '"' ? PLACE_CLOSED : PLACE_QUOTED;
		else if (at == PLACE_CLOSED && c == '"')
			at = PLACE_QUOTED;
		else if (separator ? c == separator : memchr(set, c, sizeof(set)) != NULL)
			at = PLACE_START;
		else if (at == PLACE_START && c == '"')
			at = PLACE_QUOTED;
		else if (at == PLACE_START && c != ' ' && c != '\t')
			at = PLACE_PLAIN;
	}
	return at;
}

/* Adds lines until all quotes are closed. */
static enum err
finish_row(struct csv_row *c, const char *end)
{
	size_t seen = 0;
	enum place at = PLACE_START;

	for (;;) {
		at = walk(at, c->line.data + seen, c->line.len - seen, c->separator);
		if (at != PLACE_QUOTED || !end || !*end)
			return ERR_OK;
		seen = c->line.len;
		enum err e = buf_append(&c->line, end, strlen(end));
		if (!e)
			e = unpack_line(c->io, &c->line, &end, c->why);
		if (e == ERR_NOMEM)
			return err_set(c->why, e, "no memory for a line");
		if (e == ERR_LIMIT)
			return err_set(c->why, ERR_INVALID,
			    "line %llu: the quotes are wrong, or a field is too long",
			    (unsigned long long)c->line_number);
		if (e)
			return e;
		c->lines += end != NULL;
	}
}

/* Reads the next row that is not blank. *end is set if there is none. A line of tabs is one of empty fields. */
static enum err
next_line(struct csv_row *c, bool *end)
{
	const char *line_end;

	do {
		buf_reset(&c->line);
		enum err e = unpack_line(c->io, &c->line, &line_end, c->why);
		*end = !line_end;
		if (e || *end)
			return e;
		c->line_number = ++c->lines;
		if (memchr(buf_str(&c->line), '"', c->line.len) && (e = finish_row(c, line_end)))
			return e;
		if (strlen(buf_str(&c->line)) != c->line.len)
			return err_set(c->why, ERR_INVALID, "line %llu holds a zero byte",
			    (unsigned long long)c->line_number);
	} while (blank(buf_str(&c->line)));
	return ERR_OK;
}

static enum err
wrong_columns(const struct csv_row *c, const char *how)
{
	return err_set(c->why, ERR_INVALID, "line %llu has %s than the first line's %zu columns",
	    (unsigned long long)c->line_number, how, c->columns);
}

enum err
csv_row_cut(struct csv_row *c, size_t last)
{
	char *at = c->line.data;

	if (c->cut)
		return ERR_OK;
	c->cut = true;
	for (size_t i = 0; i < c->columns && i <= last; i++) {
		if (!at)
			return wrong_columns(c, "fewer fields");
		if (!csv_field_cut(&at, c->separator, &c->fields[i]))
			return csv_row_fault(c, i, "the quotes are wrong");
	}
	return at && last == CSV_ROW_ALL ? wrong_columns(c, "more fields") : ERR_OK;
}

enum err
csv_row_number(const struct csv_row *c, size_t column, double *out)
{
	const char *field = c->fields[column];

	if (csv_field_number(field, out))
		return ERR_OK;
	if (!csv_row_missing(field))
		return csv_row_fault(c, column, "this is not a finite decimal number");
	if (!c->fill)
		return csv_row_fault(c, column,
		    *field ? "the value is missing; \"missing\" says what to do"
			   : "the field is empty; \"missing\" says what to do");
	*out = c->filler;
	return ERR_OK;
}

/* --- the first line */

/* One outside quotes. */
static bool
holds(const char *line, char separator)
{
	bool quoted = false;

	for (; *line; line++) {
		if (*line == '"')
			quoted = !quoted;
		else if (*line == separator && !quoted)
			return true;
	}
	return false;
}

static char
guess_separator(const char *line)
{
	if (holds(line, ';'))
		return ';';
	return holds(line, ',') || !holds(line, '\t') ? ',' : '\t';
}

/* The number of the column called `name`: by the header, else by number. */
static size_t
find_column(const struct csv_row *c, const char *name)
{
	uint64_t number = c->columns - 1;

	for (size_t i = 0; c->header && i < c->columns; i++)
		if (strcmp(c->fields[i], name) == 0)
			return i;
	if (strcmp(name, "last") != 0 && !num_u64(name, c->columns - 1, &number))
		return CSV_ROW_NONE;
	return (size_t)number;
}

static enum err
no_column(const struct csv_row *c, const char *name, const char *what)
{
	return err_set(c->why, ERR_INVALID, "there is no column \"%.64s\" for %s", name, what);
}

static enum err
list_features(struct csv_row *c, const char *columns)
{
	char name[DATA_SOURCE_TEXT];
	size_t n = data_source_names(columns, 0, NULL, 0);

	if (n > c->columns)
		return err_set(c->why, ERR_INVALID, "more columns are named than there are");
	for (size_t i = 0; i < n; i++) {
		data_source_names(columns, i, name, sizeof(name));
		size_t at = find_column(c, name);
		if (at == CSV_ROW_NONE)
			return no_column(c, name, "a feature");
		c->features[c->feature_count++] = at;
	}
	return ERR_OK;
}

static enum err
choose_columns(struct csv_row *c, const struct csv_form *how)
{
	const char *label = how->label ? how->label : "last";

	c->label = find_column(c, label);
	if (c->label == CSV_ROW_NONE)
		return no_column(c, label, "the label");
	/* A row whose label is a name looks like a header whose other columns have numbers for names. */
	c->doubtful = c->word == c->label && strcmp(c->fields[c->label], label) != 0;
	c->group = CSV_ROW_NONE;
	if (how->group && *how->group) {
		c->group = find_column(c, how->group);
		if (c->group == CSV_ROW_NONE)
			return no_column(c, how->group, "the groups");
	}
	if (how->columns && *how->columns)
		return list_features(c, how->columns);
	for (size_t i = 0; i < c->columns; i++)
		if (i != c->label && i != c->group)
			c->features[c->feature_count++] = i;
	return c->feature_count > 0
	    ? ERR_OK
	    : err_set(c->why, ERR_INVALID, "no column is left for a feature");
}

/* A header, if not told otherwise, for a field that is neither empty nor a number. */
static void
guess_header(struct csv_row *c, const struct csv_form *how)
{
	size_t words = 0;
	double v;

	c->word = CSV_ROW_NONE;
	c->header = how->header == DATA_HEADER_YES;
	if (how->header != DATA_HEADER_GUESS)
		return;
	for (size_t i = 0; i < c->columns; i++)
		if (!csv_row_missing(c->fields[i]) && !num_double(c->fields[i], &v)) {
			words++;
			c->word = i;
		}
	c->header = words > 0;
	if (words != 1)
		c->word = CSV_ROW_NONE;
}

/* Looks at the first line, of which `copy` may be cut up. */
static enum err
survey(struct csv_row *c, char *copy, const struct csv_form *how)
{
	size_t room = 1;

	for (const char *p = copy; *p; p++)
		room += *p == c->separator;
	if (room > COLUMNS_MAX)
		return err_set(c->why, ERR_LIMIT, "more than %u columns", COLUMNS_MAX);
	c->fields = calloc(room, sizeof(*c->fields));
	c->features = calloc(room, sizeof(*c->features));
	if (!c->fields || !c->features)
		return err_set(c->why, ERR_NOMEM, "no memory for %zu columns", room);
	for (char *at = copy; at; c->columns++)
		if (!csv_field_cut(&at, c->separator, &c->fields[c->columns]))
			return csv_row_fault(c, c->columns, "the quotes are wrong");
	if (c->columns < 2)
		return err_set(c->why, ERR_INVALID,
		    "line %llu has a single column; a label and a value are needed",
		    (unsigned long long)c->line_number);
	guess_header(c, how);
	return choose_columns(c, how);
}

/* The names of a header may be cut only once the line's own bytes are not needed any more, so it is surveyed in a copy. */
static enum err
begin(struct csv_row *c, const struct csv_form *how)
{
	static const char separators[] = {
	    [DATA_GUESS] = 0, [DATA_COMMA] = ',', [DATA_SEMICOLON] = ';', [DATA_TAB] = '\t'};
	bool end;

	c->separator = separators[how->separator];
	enum err e = next_line(c, &end);
	if (e)
		return e;
	if (end)
		return err_set(c->why, ERR_INVALID, "the file holds no rows");
	if (how->separator == DATA_GUESS)
		c->separator = guess_separator(c->line.data);
	char *copy = strdup(c->line.data);
	if (!copy)
		return err_set(c->why, ERR_NOMEM, "no memory for a line");
	e = survey(c, copy, how);
	free(copy);
	c->pending = !c->header;
	return e;
}

enum err
csv_row_open(
    struct csv_row *c, const void *file, size_t len, const struct csv_form *how, struct why *why)
{
	*c = (struct csv_row){.why = why};
	c->max_rows = how->max_rows > 0 ? how->max_rows : DATASET_EXAMPLES_MAX;
	if (c->max_rows > DATASET_EXAMPLES_MAX)
		c->max_rows = DATASET_EXAMPLES_MAX;
	buf_init(&c->line, CSV_LINE_MAX);
	if (how->missing && *how->missing) {
		c->skip = strcmp(how->missing, "skip") == 0;
		c->fill = num_double(how->missing, &c->filler);
		if (!c->skip && !c->fill)
			return err_set(why, ERR_INVALID, "\"missing\" is skip or a number");
	}
	enum err e = unpack_open(&c->io, file, len, why);
	if (!e)
		e = unpack_text(c->io, why);
	return e ? e : begin(c, how);
}

void
csv_row_close(struct csv_row *c)
{
	unpack_close(c->io);
	buf_deinit(&c->line);
	free(c->fields);
	free(c->features);
}

/* --- rows */

static bool
lacks_value(const struct csv_row *c)
{
	if (csv_row_missing(c->fields[c->label]))
		return true;
	if (c->group != CSV_ROW_NONE && csv_row_missing(c->fields[c->group]))
		return true;
	for (size_t i = 0; i < c->feature_count; i++)
		if (csv_row_missing(c->fields[c->features[i]]))
			return true;
	return false;
}

/* Does the row that was read count? */
static enum err
row_counts(struct csv_row *c, bool *counts)
{
	enum err e = c->skip ? csv_row_cut(c, CSV_ROW_ALL) : ERR_OK;

	*counts = !e && !(c->skip && lacks_value(c));
	return e;
}

enum err
csv_row_next(struct csv_row *c, bool *end)
{
	bool counts = false;

	*end = false;
	while (!counts) {
		enum err e = c->pending ? ERR_OK : next_line(c, end);
		c->cut = false;
		if (!e && !*end)
			e = row_counts(c, &counts);
		if (e || *end)
			return e;
		c->pending = false;
	}
	if (c->row == c->max_rows)
		return err_set(
		    c->why, ERR_LIMIT, "more than %llu rows", (unsigned long long)c->max_rows);
	c->row++;
	return ERR_OK;
}
