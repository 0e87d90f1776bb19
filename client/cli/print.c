#include "print.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "buf.h"
#include "clock.h"
#include "json.h"
#include "shown.h"

#define JSON_TEXT_MAX (64u << 20)
#define CELLS_MAX (1u << 21) /* more than the largest answer has */

/* Outside of strings JSON has no character that is not shown but white space. */
static void
put_json(const char *text, size_t left)
{
	unsigned code;

	while (left > 0) {
		size_t n = shown_decode(text, left, &code);
		if (shown_char(text, left) > 0 || *text == '\n' || *text == '\t')
			fwrite(text, 1, n, stdout);
		else
			printf("\\u%04x", code);
		text += n;
		left -= n;
	}
	putchar('\n');
}

static void
print_json(const struct json *v, bool pretty)
{
	struct buf text;

	buf_init(&text, JSON_TEXT_MAX);
	if (json_print(&text, v, pretty))
		fprintf(stderr, "rivulet: the answer is too large to print\n");
	else
		put_json(buf_str(&text), text.len);
	buf_deinit(&text);
}

void
cmd_print_json(const struct json *v)
{
	print_json(v, true);
}

void
cmd_print_json_line(const struct json *v)
{
	print_json(v, false);
}

static void __attribute__((format(printf, 3, 0)))
put(FILE *to, const char *end, const char *fmt, va_list ap)
{
	char *text = NULL;

	if (vasprintf(&text, fmt, ap) < 0)
		return;
	shown_clean(text);
	fprintf(to, "%s%s", text, end);
	free(text);
}

void
cmd_print_line(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put(stdout, "\n", fmt, ap);
	va_end(ap);
}

void
cmd_print_part(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put(stdout, "", fmt, ap);
	va_end(ap);
}

void
cmd_print_said(const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "\n\t");
		char *part = strndup(text, n);
		if (part) {
			shown_clean(part);
			fputs(part, stderr);
		}
		free(part);
		text += n;
		if (*text)
			fputc(*text++, stderr);
	}
}

void
cmd_print_error(const char *fmt, ...)
{
	va_list ap;

	fputs("rivulet: ", stderr);
	va_start(ap, fmt);
	put(stderr, "\n", fmt, ap);
	va_end(ap);
}

void
cmd_print_start(struct cmd_table *t, const char *const *heads, size_t columns)
{
	assert(columns <= CMD_PRINT_COLUMNS_MAX);
	*t = (struct cmd_table){.columns = columns};
	for (size_t i = 0; i < columns; i++)
		cmd_print_cell(t, "%s", heads[i]);
}

void
cmd_print_cell(struct cmd_table *t, const char *fmt, ...)
{
	va_list ap;

	if (t->count == t->room) {
		size_t room = t->room ? t->room * 2 : 64;
		char(*cells)[CMD_PRINT_CELL_MAX] =
		    room <= CELLS_MAX ? realloc(t->cells, room * sizeof(*cells)) : NULL;
		if (!cells)
			return;
		t->cells = cells;
		t->room = room;
	}
	char *cell = t->cells[t->count++];
	va_start(ap, fmt);
	vsnprintf(cell, CMD_PRINT_CELL_MAX, fmt, ap);
	va_end(ap);
	shown_clean(cell);
}

/* Letters of units alone do not make a name; that of an exponent does, unless the whole cell is a number. */
static bool
is_numeric(const char *cell)
{
	char *end = NULL;

	if (cell[strspn(cell, "-0123456789./%smhdKMGT")] == '\0')
		return true;
	if (!isdigit((unsigned char)cell[*cell == '-']))
		return false;
	strtod(cell, &end);
	return *end == '\0';
}

static bool
column_is_numeric(const struct cmd_table *t, size_t column)
{
	size_t rows = t->count / t->columns;

	for (size_t r = 1; r < rows; r++)
		if (!is_numeric(t->cells[r * t->columns + column]))
			return false;
	return rows > 1;
}

void
cmd_print_end(struct cmd_table *t)
{
	int width[CMD_PRINT_COLUMNS_MAX] = {0};
	bool right[CMD_PRINT_COLUMNS_MAX];
	size_t rows = t->columns ? t->count / t->columns : 0;

	for (size_t i = 0; i < rows * t->columns; i++) {
		int len = (int)strlen(t->cells[i]);
		if (len > width[i % t->columns])
			width[i % t->columns] = len;
	}
	for (size_t c = 0; c < t->columns; c++)
		right[c] = column_is_numeric(t, c);
	for (size_t i = 0; i < rows * t->columns; i++) {
		size_t c = i % t->columns;
		bool last = c + 1 == t->columns;
		int w = right[c] ? width[c] : last ? 0 : -width[c];
		printf("%*s%s", w, t->cells[i], last ? "\n" : "  ");
	}
	free(t->cells);
	t->cells = NULL;
}

static void
cut(struct cmd_table *t, size_t most)
{
	if (most == 0 || t->count == 0)
		return;
	char *cell = t->cells[t->count - 1];
	if (strlen(cell) > most) {
		cell[most - 1] = '~';
		cell[most] = '\0';
	}
}

void
cmd_print_rows(const struct cmd_column *columns, const struct json *array)
{
	const char *heads[CMD_PRINT_COLUMNS_MAX];
	struct cmd_table t;
	size_t n = 0;

	for (; n < CMD_PRINT_COLUMNS_MAX && columns[n].head; n++)
		heads[n] = columns[n].head;
	cmd_print_start(&t, heads, n);
	for (const struct json *row = json_first(array); row; row = json_next(row))
		for (const struct cmd_column *c = columns; c < columns + n; c++) {
			c->cell(&t, c->in ? json_get(row, c->in) : row, c->key);
			cut(&t, c->most);
		}
	cmd_print_end(&t);
}

void
cmd_print_members(const struct json *array, const char *key)
{
	for (const struct json *v = json_first(array); v; v = json_next(v)) {
		const char *text = json_string(json_get(v, key));
		if (text && *text)
			cmd_print_line("%s", text);
	}
}

void
cmd_print_text(struct cmd_table *t, const struct json *object, const char *key)
{
	const char *text = json_string(json_get(object, key));

	cmd_print_cell(t, "%s", text && *text ? text : "-");
}

void
cmd_print_short_id(struct cmd_table *t, const struct json *object, const char *key)
{
	const char *text = json_string(json_get(object, key));

	cmd_print_cell(t, "%.*s", CMD_PRINT_ID_SHOWN, text && *text ? text : "-");
}

void
cmd_print_count(struct cmd_table *t, const struct json *object, const char *key)
{
	uint64_t v;

	if (json_u64(json_get(object, key), &v))
		cmd_print_cell(t, "%llu", (unsigned long long)v);
	else
		cmd_print_cell(t, "-");
}

const char *
cmd_print_number(char out[CMD_PRINT_NUMBER_MAX], double v)
{
	snprintf(out, CMD_PRINT_NUMBER_MAX, isfinite(v) && fabs(v) >= 1e6 ? "%.4g" : "%.4f", v);
	return out;
}

void
cmd_print_figure(struct cmd_table *t, const struct json *object, const char *key)
{
	char number[CMD_PRINT_NUMBER_MAX];
	double v;

	if (json_double(json_get(object, key), &v) && isfinite(v))
		cmd_print_cell(t, "%s", cmd_print_number(number, v));
	else
		cmd_print_cell(t, "-");
}

void
cmd_print_bytes(struct cmd_table *t, const struct json *object, const char *key)
{
	static const char units[] = " KMGT";
	double v;
	size_t unit = 0;

	if (!json_double(json_get(object, key), &v)) {
		cmd_print_cell(t, "-");
		return;
	}
	while (v >= 1024 && unit + 2 < sizeof(units)) {
		v /= 1024;
		unit++;
	}
	if (unit == 0)
		cmd_print_cell(t, "%.0f", v);
	else
		cmd_print_cell(t, "%.1f%c", v, units[unit]);
}

void
cmd_print_time(char out[CMD_PRINT_TIME_MAX], double seconds)
{
	time_t t = (time_t)seconds;
	struct tm tm;

	if (!gmtime_r(&t, &tm) || !strftime(out, CMD_PRINT_TIME_MAX, "%Y-%m-%dT%H:%M:%SZ", &tm))
		strcpy(out, "?");
}

#define AHEAD_S 120 /* less is how far two clocks may be apart */

static void
print_span(struct cmd_table *t, const struct json *object, const char *key, bool ahead)
{
	double v;

	if (!json_double(json_get(object, key), &v) || v <= 0) {
		cmd_print_cell(t, "-");
		return;
	}
	double age = fabs(clock_wall() - v);
	if (ahead && v - clock_wall() > AHEAD_S)
		cmd_print_cell(t, "ahead");
	else if (age < 120)
		cmd_print_cell(t, "%.0fs", age);
	else if (age < 7200)
		cmd_print_cell(t, "%.0fm", age / 60);
	else if (age < 172800)
		cmd_print_cell(t, "%.0fh", age / 3600);
	else
		cmd_print_cell(t, "%.0fd", age / 86400);
}

void
cmd_print_age(struct cmd_table *t, const struct json *object, const char *key)
{
	print_span(t, object, key, true);
}

void
cmd_print_until(struct cmd_table *t, const struct json *object, const char *key)
{
	print_span(t, object, key, false);
}

void
cmd_print_labels(struct cmd_table *t, const struct json *object, const char *key)
{
	const struct json *labels = json_get(object, key);
	char text[CMD_PRINT_CELL_MAX] = "";
	size_t len = 0;

	for (size_t i = 0; i < json_count(labels) && len < sizeof(text); i++) {
		const char *value = json_string(json_at(labels, i));
		int n = snprintf(text + len, sizeof(text) - len, "%s%s=%s", i ? "," : "",
		    json_key(json_at(labels, i)), value ? value : "?");
		len += n > 0 ? (size_t)n : 0;
	}
	cmd_print_cell(t, "%s", *text ? text : "-");
}
