#include "csv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "csv_field.h"
#include "num.h"
#include "unpack.h"

#define COLUMNS_MAX (1u << 20)

/* A file being read, row by row. */
struct csv {
	struct unpack *io;
	struct buf line; /* the current row; cut into fields in place */
	uint64_t line_number; /* from 1 */
	uint64_t row; /* rows read */
	uint64_t max_rows;
	char separator;
	bool header; /* the first line is one */
	bool pending; /* the first line is a row that was not returned yet */
	size_t columns;
	size_t label;
	bool regression;
	struct why *why;
};

/* What was kept of it. */
struct rows {
	size_t count, room;
	size_t features;
	float *values;
	int32_t *labels;
	float *targets;
};

static bool
blank(const char *text)
{
	return text[strspn(text, " \t")] == '\0';
}

/* Reads the next line that is not blank. *end is set if there is none. */
static enum err
next_line(struct csv *c, bool *end)
{
	do {
		enum err e = unpack_line(c->io, &c->line, end, c->why);
		if (e || *end)
			return e;
		c->line_number++;
		if (c->line.len > 0 && c->line.data[c->line.len - 1] == '\r')
			c->line.data[--c->line.len] = '\0';
		if (strlen(buf_str(&c->line)) != c->line.len)
			return err_set(c->why, ERR_INVALID, "line %llu holds a zero byte",
			    (unsigned long long)c->line_number);
	} while (blank(buf_str(&c->line)));
	return ERR_OK;
}

static enum err
bad_field(const struct csv *c, size_t column, const char *what)
{
	return err_set(c->why, ERR_INVALID, "line %llu, column %zu: %s",
	    (unsigned long long)c->line_number, column + 1, what);
}

static enum err
read_number(const struct csv *c, char **at, size_t column, double *out)
{
	const char *fault = csv_field_number(at, c->separator, out);

	return fault ? bad_field(c, column, fault) : ERR_OK;
}

static enum err
wrong_columns(const struct csv *c, const char *how)
{
	return err_set(c->why, ERR_INVALID, "line %llu has %s than the first line's %zu columns",
	    (unsigned long long)c->line_number, how, c->columns);
}

static enum err
to_class(const struct csv *c, double v, int32_t *out)
{
	if (!(v >= 0 && v < RECIPE_CLASSES_MAX) || v != floor(v))
		return bad_field(c, c->label, "a class is a whole number from 0 to 4095");
	*out = (int32_t)v;
	return ERR_OK;
}
_Static_assert(RECIPE_CLASSES_MAX == 4096, "to_class names the largest class");

static enum err
to_float(const struct csv *c, size_t column, double v, float *out)
{
	*out = (float)v;
	return isfinite(*out) ? ERR_OK : bad_field(c, column, "the number is too large");
}

/* Puts the number of a column where it belongs in row number `count`. */
static enum err
store(const struct csv *c, struct rows *r, size_t column, double v)
{
	if (column == c->label && c->regression)
		return to_float(c, column, v, &r->targets[r->count]);
	if (column == c->label)
		return to_class(c, v, &r->labels[r->count]);
	return to_float(
	    c, column, v, &r->values[r->count * r->features + column - (column > c->label)]);
}

static bool
resize(void **block, size_t count, size_t size)
{
	size_t bytes;

	if (!num_mul(count, size, &bytes))
		return false;
	void *p = realloc(*block, bytes > 0 ? bytes : 1);
	if (p)
		*block = p;
	return p != NULL;
}

/* Changes the room of all columns to `room` rows. */
static enum err
set_room(const struct csv *c, struct rows *r, size_t room)
{
	void *values = r->values, *labels = r->labels, *targets = r->targets;
	bool ok = resize(&values, room, r->features * sizeof(float)) &&
	    (c->regression ? resize(&targets, room, sizeof(float))
			   : resize(&labels, room, sizeof(int32_t)));

	r->values = values;
	r->labels = labels;
	r->targets = targets;
	if (!ok)
		return err_set(c->why, ERR_NOMEM, "no memory for %zu rows", room);
	r->room = room;
	return ERR_OK;
}

static enum err
keep_row(struct csv *c, struct rows *r)
{
	char *at = c->line.data;
	size_t column = 0;

	if ((r->count + 1) * (uint64_t)r->features * sizeof(float) > DATASET_BYTES_MAX)
		return err_set(c->why, ERR_LIMIT, "the rows need too much memory");
	if (r->count == r->room) {
		enum err e = set_room(c, r, r->room > 0 ? r->room * 2 : 16);
		if (e)
			return e;
	}
	for (; at; column++) {
		double v;
		if (column == c->columns)
			return wrong_columns(c, "more fields");
		enum err e = read_number(c, &at, column, &v);
		if (!e)
			e = store(c, r, column, v);
		if (e)
			return e;
	}
	if (column < c->columns)
		return wrong_columns(c, "fewer fields");
	r->count++;
	return ERR_OK;
}

/* The class in the current row, without looking at the columns after it. */
static enum err
row_class(struct csv *c, int32_t *out)
{
	char *at = c->line.data, *text;
	double v = 0;

	*out = 0;
	for (size_t i = 0; i < c->label; i++) {
		if (!csv_field_cut(&at, c->separator, &text))
			return bad_field(c, i, "the quotes are wrong");
		if (!at)
			return wrong_columns(c, "fewer fields");
	}
	enum err e = read_number(c, &at, c->label, &v);
	if (e || c->regression)
		return e;
	return to_class(c, v, out);
}

/* Looks at the first line, given as a copy to cut up: number of columns, header or not, column called `label`. */
static enum err
survey(struct csv *c, char *at, const char *label)
{
	bool found = false;
	char *text;
	double v;

	for (c->columns = 0; at; c->columns++) {
		if (c->columns == COLUMNS_MAX)
			return err_set(c->why, ERR_LIMIT, "more than %u columns", COLUMNS_MAX);
		if (!csv_field_cut(&at, c->separator, &text))
			return bad_field(c, c->columns, "the quotes are wrong");
		if (*text && !num_double(text, &v))
			c->header = true;
		if (!found && label && strcmp(text, label) == 0) {
			c->label = c->columns;
			found = true;
		}
	}
	if (c->columns < 2)
		return err_set(c->why, ERR_INVALID,
		    "line %llu has a single column; a label and a value are needed",
		    (unsigned long long)c->line_number);
	if (found && c->header)
		return ERR_OK;
	uint64_t number = c->columns - 1;
	if (label && strcmp(label, "last") != 0 && !num_u64(label, c->columns - 1, &number))
		return err_set(
		    c->why, ERR_INVALID, "there is no column \"%.64s\" for the label", label);
	c->label = (size_t)number;
	return ERR_OK;
}

/* Reads the first line. The names of a header may be cut only once the line's own bytes are not needed any more, so it is
 * surveyed in a copy. */
static enum err
begin(struct csv *c, const char *label)
{
	static const char mark[] = "\xef\xbb\xbf"; /* UTF-8 byte order mark */
	bool end;
	enum err e = next_line(c, &end);

	if (e)
		return e;
	if (end)
		return err_set(c->why, ERR_INVALID, "the file holds no rows");
	if (strncmp(c->line.data, mark, 3) == 0)
		buf_consume(&c->line, 3);
	c->separator = strchr(c->line.data, ';') ? ';' : ',';
	char *copy = strdup(c->line.data);
	if (!copy)
		return err_set(c->why, ERR_NOMEM, "no memory for a line");
	e = survey(c, copy, label);
	free(copy);
	c->pending = !c->header;
	return e;
}

static enum err
csv_open(struct csv *c, const void *file, size_t len, const struct csv_form *how, struct why *why)
{
	*c = (struct csv){.why = why, .regression = how->regression};
	c->max_rows = how->max_rows > 0 ? how->max_rows : DATASET_EXAMPLES_MAX;
	if (c->max_rows > DATASET_EXAMPLES_MAX)
		c->max_rows = DATASET_EXAMPLES_MAX;
	buf_init(&c->line, CSV_LINE_MAX);
	enum err e = unpack_open(&c->io, file, len, why);
	return e ? e : begin(c, how->label);
}

static void
csv_close(struct csv *c)
{
	unpack_close(c->io);
	buf_deinit(&c->line);
}

/* Brings the next row into c->line and counts it. */
static enum err
next_row(struct csv *c, bool *end)
{
	*end = false;
	if (!c->pending) {
		enum err e = next_line(c, end);
		if (e || *end)
			return e;
	}
	c->pending = false;
	if (c->row == c->max_rows)
		return err_set(
		    c->why, ERR_LIMIT, "more than %llu rows", (unsigned long long)c->max_rows);
	c->row++;
	return ERR_OK;
}

static enum err
read_rows(struct csv *c, struct rows *r, const uint32_t *keep, size_t keep_count)
{
	r->features = c->columns - 1;
	for (;;) {
		bool end;
		enum err e = next_row(c, &end);
		if (e)
			return e;
		if (end)
			break;
		if (keep && (r->count == keep_count || keep[r->count] != c->row - 1))
			continue;
		e = keep_row(c, r);
		if (e)
			return e;
	}
	if (c->row == 0)
		return err_set(c->why, ERR_INVALID, "the file holds a header and no rows");
	if (keep && r->count < keep_count)
		return err_set(
		    c->why, ERR_INVALID, "the file has only %llu rows", (unsigned long long)c->row);
	return set_room(c, r, r->count);
}

/* Hands the rows over to a data set. */
static void
give(struct dataset *out, const struct rows *r, bool regression)
{
	*out = (struct dataset){.count = r->count,
	    .shape = {(uint32_t)r->features, 1, 1},
	    .dims = 1,
	    .features = r->features,
	    .floats = r->values,
	    .labels = r->labels,
	    .targets = r->targets,
	    .target_width = regression ? 1 : 0};
	for (size_t i = 0; r->labels && i < r->count; i++)
		if ((size_t)r->labels[i] >= out->classes)
			out->classes = (size_t)r->labels[i] + 1;
}

enum err
csv_read(struct dataset *out, const void *file, size_t len, const struct csv_form *how,
    const uint32_t *keep, size_t keep_count, struct why *why)
{
	struct rows r = {0};
	struct csv c;
	enum err e = unpack_check_keep(keep, keep_count, why);

	if (e)
		return e;
	e = csv_open(&c, file, len, how, why);
	if (!e)
		e = read_rows(&c, &r, keep, keep_count);
	csv_close(&c);
	if (!e) {
		give(out, &r, how->regression);
	} else {
		free(r.values);
		free(r.labels);
		free(r.targets);
	}
	return e;
}

static enum err
read_classes(struct csv *c, int32_t **labels, size_t *count)
{
	size_t room = 0;

	for (;;) {
		bool end;
		enum err e = next_row(c, &end);
		if (e)
			return e;
		if (end)
			break;
		if (*count == room) {
			void *block = *labels;
			room = room > 0 ? room * 2 : 1024;
			if (!resize(&block, room, sizeof(**labels)))
				return err_set(c->why, ERR_NOMEM, "no memory for %zu labels", room);
			*labels = block;
		}
		e = row_class(c, &(*labels)[*count]);
		if (e)
			return e;
		(*count)++;
	}
	return *count > 0 ? ERR_OK
			  : err_set(c->why, ERR_INVALID, "the file holds a header and no rows");
}

enum err
csv_labels(int32_t **labels, size_t *count, const void *file, size_t len,
    const struct csv_form *how, struct why *why)
{
	int32_t *out = NULL;
	size_t n = 0;
	struct csv c;
	enum err e = csv_open(&c, file, len, how, why);

	if (!e)
		e = read_classes(&c, &out, &n);
	csv_close(&c);
	if (e) {
		free(out);
		return e;
	}
	*labels = out;
	*count = n;
	return ERR_OK;
}
