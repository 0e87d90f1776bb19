#include "grid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"

#define VALUE_MAX 4096 /* bytes of one value's text */

void
grid_init(struct grid *g)
{
	*g = (struct grid){.cells = 1};
}

void
grid_deinit(struct grid *g)
{
	for (size_t i = 0; i < g->count; i++)
		json_free(g->lists[i].values);
	g->count = 0;
}

/* Bytes up to the comma that ends the value, or the end. */
static size_t
value_length(const char *text)
{
	int depth = 0;
	bool quoted = false;
	size_t i = 0;

	for (; text[i]; i++) {
		if (quoted && text[i] == '\\' && text[i + 1]) {
			i++;
			continue;
		}
		if (text[i] == '"')
			quoted = !quoted;
		else if (!quoted && strchr("[{", text[i]))
			depth++;
		else if (!quoted && strchr("]}", text[i]))
			depth--;
		else if (!quoted && depth <= 0 && text[i] == ',')
			break;
	}
	return i;
}

static bool
equal(const struct json *a, const struct json *b)
{
	struct buf x, y;

	buf_init(&x, VALUE_MAX);
	buf_init(&y, VALUE_MAX);
	bool same = json_print(&x, a, false) == ERR_OK && json_print(&y, b, false) == ERR_OK &&
	    strcmp(buf_str(&x), buf_str(&y)) == 0;
	buf_deinit(&x);
	buf_deinit(&y);
	return same;
}

static enum err
add_value(struct grid_list *l, const char *text, size_t len, struct why *why)
{
	char copy[VALUE_MAX];
	struct json *value;

	if (len >= sizeof(copy))
		return err_set(why, ERR_LIMIT, "a value longer than %d bytes", VALUE_MAX - 1);
	if (l->count == GRID_CELLS_MAX)
		return err_set(why, ERR_LIMIT, "more than %d values", GRID_CELLS_MAX);
	memcpy(copy, text, len);
	copy[len] = '\0';
	enum err e = edit_value(&value, copy, why);
	if (e)
		return e;
	bool twice = false;
	for (const struct json *v = json_first(l->values); v; v = json_next(v))
		twice = twice || equal(v, value);
	json_push(l->values, value);
	l->count++;
	return twice ? err_set(why, ERR_INVALID, "%.60s=%.60s is given twice", l->path, copy)
		     : ERR_OK;
}

static enum err
add_values(struct grid_list *l, const char *text, struct why *why)
{
	for (;;) {
		size_t len = value_length(text);
		enum err e = add_value(l, text, len, why);
		if (e || !text[len])
			return e;
		text += len + 1;
	}
}

static enum err
check_path(const struct grid *g, const char *path, struct why *why)
{
	if (strcmp(path, "name") == 0)
		return err_set(why, ERR_INVALID,
		    "a sweep names its jobs itself: --prefix says how the names begin");
	for (size_t i = 0; i < g->count; i++)
		if (strcmp(g->lists[i].path, path) == 0)
			return err_set(why, ERR_INVALID, "--set %.60s is given twice", path);
	if (g->count == GRID_LISTS_MAX)
		return err_set(why, ERR_LIMIT, "more than %d lists of values", GRID_LISTS_MAX);
	return ERR_OK;
}

enum err
grid_add(struct grid *g, const char *text, struct why *why)
{
	struct grid_list l = {.count = 0};
	const char *values;
	enum err e = edit_split(text, l.path, &values, why);

	if (!e)
		e = check_path(g, l.path, why);
	if (!e && !(l.values = json_array()))
		e = err_set(why, ERR_NOMEM, "no memory");
	if (!e)
		e = add_values(&l, values, why);
	if (!e && g->cells * l.count > GRID_CELLS_MAX)
		e = err_set(why, ERR_LIMIT, "a grid of more than %d jobs", GRID_CELLS_MAX);
	if (e) {
		json_free(l.values);
		return e;
	}
	g->lists[g->count++] = l;
	g->cells *= l.count;
	return ERR_OK;
}

const struct json *
grid_value(const struct grid *g, size_t cell, size_t list)
{
	for (size_t i = g->count - 1; i > list; i--)
		cell /= g->lists[i].count;
	return json_at(g->lists[list].values, cell % g->lists[list].count);
}

void
grid_show(char *out, size_t room, const struct json *value)
{
	const char *text = json_string(value);
	struct buf b;

	buf_init(&b, VALUE_MAX);
	if (!text && json_print(&b, value, false) == ERR_OK)
		text = buf_str(&b);
	snprintf(out, room, "%s", text ? text : "?");
	buf_deinit(&b);
}

/* Adds to a name, which is cut where it is full. */
static void
add_to(char name[GRID_NAME_MAX], const char *text)
{
	size_t len = strlen(name);

	snprintf(name + len, GRID_NAME_MAX - len, "%s", text);
}

void
grid_name(char out[GRID_NAME_MAX], const struct grid *g, size_t cell, const char *prefix)
{
	char value[GRID_NAME_MAX];
	bool first = true;

	*out = '\0';
	add_to(out, prefix);
	for (size_t i = 0; i < g->count; i++) {
		/* What all jobs have tells none from another. */
		if (g->cells > 1 && g->lists[i].count == 1)
			continue;
		grid_show(value, sizeof(value), grid_value(g, cell, i));
		add_to(out, first ? "" : "-");
		add_to(out, value);
		first = false;
	}
	grid_clean(out);
}

void
grid_clean(char *name)
{
	static const char good[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";

	for (char *p = name; *p; p++)
		if (!strchr(good, *p))
			*p = '-';
}

enum err
grid_document(struct json **out, const struct grid *g, size_t cell, const struct json *base,
    const char *prefix, struct why *why)
{
	char name[GRID_NAME_MAX];
	enum err e = ERR_OK;

	*out = json_copy(base);
	for (size_t i = 0; !e && i < g->count; i++)
		e = edit_put(out, g->lists[i].path, grid_value(g, cell, i), why);
	grid_name(name, g, cell, prefix);
	struct json *value = json_new_string(name);
	if (!e)
		e = edit_put(out, "name", value, why);
	json_free(value);
	if (e) {
		json_free(*out);
		*out = NULL;
	}
	return e;
}
