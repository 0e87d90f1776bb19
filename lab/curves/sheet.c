#include "sheet.h"

#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "err.h"
#include "json.h"
#include "shown.h"

static const struct {
	const char *head;
	bool job; /* a member of the JOB, else of the ROUND */
	const char *key;
} columns[] = {
    {"job", true, "job"},
    {"name", true, "name"},
    {"round", false, "round"},
    {"state", false, "state"},
    {"ended_at", false, "closed_at"},
    {"seconds", false, "seconds"},
    {"reports", false, "reports"},
    {"examples", false, "examples"},
    {"bytes_up", false, "bytes_up"},
    {"bytes_down", false, "bytes_down"},
    {"model", false, "model"},
};
#define COUNT (sizeof(columns) / sizeof(columns[0]))

void
sheet_deinit(struct sheet *s)
{
	free(s->tags);
	*s = (struct sheet){.tags = NULL};
}

static void
note(void *context, const char *tag, double value)
{
	struct sheet *s = context;

	(void)value;
	for (size_t i = 0; i < s->count; i++)
		if (strcmp(s->tags[i], tag) == 0)
			return;
	if (s->err)
		return;
	if (!s->tags)
		s->tags = calloc(SHEET_TAGS_MAX, sizeof(*s->tags));
	if (!s->tags || s->count == SHEET_TAGS_MAX) {
		s->err = s->tags ? ERR_LIMIT : ERR_NOMEM;
		return;
	}
	strcpy(s->tags[s->count++], tag);
}

enum err
sheet_look(struct sheet *s, const struct json *round, struct why *why)
{
	scalars_each(round, note, s);
	if (s->err == ERR_LIMIT)
		return err_set(why, s->err, "more than %d names of figures", SHEET_TAGS_MAX);
	return s->err ? err_set(why, s->err, "no memory") : ERR_OK;
}

/* Quoted where it must be; what would steer a terminal is a '?' here as well. */
static enum err
put_text(struct buf *out, const char *text)
{
	char *clean = strdup(text);
	enum err e = clean ? ERR_OK : ERR_NOMEM;

	if (clean)
		shown_clean(clean);
	bool quote = clean && strpbrk(clean, ",\"");
	if (!e && quote)
		e = buf_append(out, "\"", 1);
	/* What a spreadsheet would compute is text to it. */
	if (!e && strchr("=+-@", *clean))
		e = buf_append(out, "'", *clean ? 1 : 0);
	for (const char *p = clean; !e && p && *p; p++)
		e = buf_printf(out, "%s%c", *p == '"' ? "\"" : "", *p);
	if (!e && quote)
		e = buf_append(out, "\"", 1);
	free(clean);
	return e;
}

static enum err
put_cell(struct buf *out, const struct json *value)
{
	const char *text = json_string(value);
	double v;

	if (text)
		return put_text(out, text);
	return json_double(value, &v) ? json_print(out, value, false) : ERR_OK;
}

enum err
sheet_heads(struct buf *out, const struct sheet *s)
{
	enum err e = ERR_OK;

	for (size_t i = 0; !e && i < COUNT; i++)
		e = buf_printf(out, "%s%s", i > 0 ? "," : "", columns[i].head);
	for (size_t i = 0; !e && i < s->count; i++) {
		e = buf_append(out, ",", 1);
		if (!e)
			e = put_text(out, s->tags[i]);
	}
	return e ? e : buf_append(out, "\n", 1);
}

enum err
sheet_row(struct buf *out, const struct sheet *s, const struct json *job, const struct json *round)
{
	enum err e = ERR_OK;
	double v;

	for (size_t i = 0; !e && i < COUNT; i++) {
		e = i > 0 ? buf_append(out, ",", 1) : ERR_OK;
		if (!e)
			e = put_cell(out, json_get(columns[i].job ? job : round, columns[i].key));
	}
	for (size_t i = 0; !e && i < s->count; i++) {
		e = buf_append(out, ",", 1);
		if (!e && scalars_get(round, s->tags[i], &v)) {
			struct json *number = json_new_double(v);
			e = json_print(out, number, false);
			json_free(number);
		}
	}
	return e ? e : buf_append(out, "\n", 1);
}
