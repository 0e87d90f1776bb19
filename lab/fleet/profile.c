#include "profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "csv_field.h"
#include "file.h"
#include "hex.h"
#include "num.h"
#include "text_file.h"

enum err
fleet_profiles_like(struct fleet_profiles *out, uint64_t count)
{
	*out = (struct fleet_profiles){.items = malloc(sizeof(*out->items))};
	if (!out->items)
		return ERR_NOMEM;
	out->items[0] = (struct fleet_profile){.name = "device",
	    .count = count,
	    .samples_per_s = FLEET_LIKE_SAMPLES_PER_S,
	    .up_bytes_per_s = FLEET_LIKE_UP_BYTES_PER_S,
	    .down_bytes_per_s = FLEET_LIKE_DOWN_BYTES_PER_S,
	    .latency_s = FLEET_LIKE_LATENCY_S,
	    .available = 1};
	out->count = 1;
	out->devices = count;
	return ERR_OK;
}

/* --- the columns: each reads a cell, and says what it wants to be if it is not that */

static const char *
set_name(struct fleet_profile *p, const char *cell)
{
	for (const char *c = cell; *c; c++)
		if (*c <= ' ' || *c > '~' || *c == '"')
			return "letters, digits and signs without blanks or quotes";
	if (!*cell || strlen(cell) >= sizeof(p->name))
		return "1 to 63 bytes";
	strcpy(p->name, cell);
	return NULL;
}

static const char *
set_count(struct fleet_profile *p, const char *cell)
{
	return num_u64(cell, FLEET_DEVICES_MAX, &p->count) && p->count > 0
	    ? NULL
	    : "a number from 1 to 1000000";
}

static const char *
set_id(struct fleet_profile *p, const char *cell)
{
	p->has_id = hex_decode(p->id, sizeof(p->id), cell, strlen(cell));
	return p->has_id ? NULL : "a device's id: 64 hexadecimal digits";
}

static const char *
set_number(double *out, const char *cell, double most, const char *want)
{
	return num_double(cell, out) && *out >= 0 && *out <= most ? NULL : want;
}

static const char *
set_samples(struct fleet_profile *p, const char *cell)
{
	return set_number(&p->samples_per_s, cell, FLEET_RATE_MAX,
	    "examples a second, 0 for no time, at most 1e15");
}

static const char *
set_up(struct fleet_profile *p, const char *cell)
{
	return set_number(&p->up_bytes_per_s, cell, FLEET_RATE_MAX,
	    "bytes a second, 0 for no time, at most 1e15");
}

static const char *
set_down(struct fleet_profile *p, const char *cell)
{
	return set_number(&p->down_bytes_per_s, cell, FLEET_RATE_MAX,
	    "bytes a second, 0 for no time, at most 1e15");
}

static const char *
set_latency(struct fleet_profile *p, const char *cell)
{
	return set_number(&p->latency_s, cell, 86400, "seconds, 0 to 86400");
}

static const char *
set_available(struct fleet_profile *p, const char *cell)
{
	const char *want = "a share of the time, 0.001 to 1";

	return set_number(&p->available, cell, 1, want) || p->available < FLEET_AVAILABLE_MIN
	    ? want
	    : NULL;
}

static const char *
set_failure(struct fleet_profile *p, const char *cell)
{
	return set_number(&p->failure, cell, FLEET_FAILURE_MAX, "a share of the tasks, 0 to 0.999");
}

static const char *
set_examples(struct fleet_profile *p, const char *cell)
{
	return num_u64(cell, FLEET_EXAMPLES_MAX, &p->examples) && p->examples > 0
	    ? NULL
	    : "a number from 1 to 100000000";
}

static const char *
set_attack(struct fleet_profile *p, const char *cell)
{
	for (int i = 0; i < FLEET_ATTACKS; i++)
		if (strcmp(cell, fleet_attack_names[i]) == 0) {
			p->attack = (enum fleet_attack)i;
			return NULL;
		}
	return "none, sign, scale, gauss, alie, ipm, mimic, labels, backdoor or lies";
}

static const char *
set_strength(struct fleet_profile *p, const char *cell)
{
	return set_number(&p->strength, cell, 1e30, "a number from 0 to 1e30");
}

static const struct column {
	const char *name;
	const char *(*set)(struct fleet_profile *p, const char *cell);
} columns[] = {{"name", set_name}, {"count", set_count}, {"id", set_id},
    {"samples_per_s", set_samples}, {"up_bytes_per_s", set_up}, {"down_bytes_per_s", set_down},
    {"latency_s", set_latency}, {"available", set_available}, {"failure", set_failure},
    {"examples", set_examples}, {"attack", set_attack}, {"strength", set_strength}};
#define COLUMNS (sizeof(columns) / sizeof(*columns))

/* --- lines */

struct table {
	struct fleet_profiles *out;
	size_t room;
	const char *name;
	size_t line;
	const struct column *order[COLUMNS]; /* as the first line has them */
	size_t width;
	struct why *why;
};

/* Cuts the next cell out of *line; *cell is NULL after the last. */
static enum err
next_cell(const struct table *t, char **line, char **cell)
{
	*cell = NULL;
	if (!*line || csv_field_cut(line, ',', cell))
		return ERR_OK;
	return err_set(t->why, ERR_INVALID, "%s:%zu: the quotes are wrong", t->name, t->line);
}

static enum err
add_column(struct table *t, const char *cell)
{
	for (size_t i = 0; i < COLUMNS; i++) {
		if (strcmp(columns[i].name, cell) != 0)
			continue;
		for (size_t k = 0; k < t->width; k++)
			if (t->order[k] == &columns[i])
				return err_set(t->why, ERR_INVALID,
				    "%s:%zu: the column %s stands there twice", t->name, t->line,
				    cell);
		t->order[t->width++] = &columns[i];
		return ERR_OK;
	}
	return err_set(t->why, ERR_INVALID,
	    "%s:%zu: unknown column \"%.40s\"; the first line names columns of: name, count, id, "
	    "samples_per_s, up_bytes_per_s, down_bytes_per_s, latency_s, available, failure, "
	    "examples, attack, strength",
	    t->name, t->line, cell);
}

static enum err
read_heads(struct table *t, char *line)
{
	char *cell;
	enum err e = next_cell(t, &line, &cell);

	while (!e && cell) {
		e = add_column(t, cell);
		if (!e)
			e = next_cell(t, &line, &cell);
	}
	return e;
}

static enum err
check(struct table *t, const struct fleet_profile *p)
{
	if (p->has_id && p->count != 1)
		return err_set(t->why, ERR_INVALID,
		    "%s:%zu: an id is that of one device: count is 1", t->name, t->line);
	t->out->devices += p->count;
	if (t->out->devices > FLEET_DEVICES_MAX)
		return err_set(t->why, ERR_LIMIT, "%s:%zu: more than %u devices", t->name, t->line,
		    FLEET_DEVICES_MAX);
	return ERR_OK;
}

/* An empty cell, and one that the line lacks at its end, leaves the default. */
static enum err
read_row(struct table *t, char *line)
{
	struct fleet_profile p = {.name = "device", .count = 1, .available = 1, .strength = -1};
	enum err e = ERR_OK;
	char *cell;

	for (size_t i = 0; !(e = next_cell(t, &line, &cell)) && cell; i++) {
		if (i == t->width)
			return err_set(t->why, ERR_INVALID,
			    "%s:%zu: more cells than the first line has columns", t->name, t->line);
		const char *want = *cell ? t->order[i]->set(&p, cell) : NULL;
		if (want)
			return err_set(t->why, ERR_INVALID, "%s:%zu: %s: \"%.40s\" is not %s",
			    t->name, t->line, t->order[i]->name, cell, want);
	}
	if (e)
		return e;
	if (p.strength < 0)
		p.strength = fleet_attack_strength(p.attack);
	e = check(t, &p);
	if (e)
		return e;
	void *grown = bytes_grow(t->out->items, t->out->count, &t->room, sizeof(p));
	if (!grown)
		return ERR_NOMEM;
	t->out->items = grown;
	t->out->items[t->out->count++] = p;
	return ERR_OK;
}

static enum err
read_line(struct table *t, const char *text, size_t len)
{
	char line[FLEET_LINE_MAX];

	if (len >= sizeof(line))
		return err_set(t->why, ERR_LIMIT, "%s:%zu: a line of more than %d bytes", t->name,
		    t->line, FLEET_LINE_MAX - 1);
	if (memchr(text, '\0', len))
		return err_set(t->why, ERR_INVALID, "%s:%zu: this is no text", t->name, t->line);
	memcpy(line, text, len);
	line[len] = '\0';
	if (line[0] == '#' || line[strspn(line, " \t")] == '\0')
		return ERR_OK;
	return t->width == 0 ? read_heads(t, line) : read_row(t, line);
}

enum err
fleet_profiles_parse(
    struct fleet_profiles *out, const char *name, const char *text, size_t len, struct why *why)
{
	struct table t = {.out = out, .name = name, .why = why};
	struct why inner;
	enum err e =
	    len > FLEET_TEXT_MAX ? err_set(why, ERR_LIMIT, "%s is too long", name) : ERR_OK;

	*out = (struct fleet_profiles){.count = 0};
	if (!e && (e = text_file_check(text, len, &inner)))
		err_set(why, e, "%.120s: %.120s", name, inner.text);
	for (size_t at = text_file_mark(text, len), next; !e && at < len; at += next) {
		size_t n = text_file_line(text + at, len - at, &next);
		t.line++;
		e = read_line(&t, text + at, n);
	}
	if (!e && out->count == 0)
		e = err_set(why, ERR_INVALID, "%s: no device", name);
	return e;
}

enum err
fleet_profiles_load(struct fleet_profiles *out, const char *path, struct why *why)
{
	char *text = NULL;
	size_t len = 0;

	*out = (struct fleet_profiles){.count = 0};
	enum err e = file_read(path, FLEET_TEXT_MAX, &text, &len, why);
	if (!e)
		e = fleet_profiles_parse(out, path, text, len, why);
	free(text);
	return e;
}

void
fleet_profiles_deinit(struct fleet_profiles *p)
{
	free(p->items);
	*p = (struct fleet_profiles){.count = 0};
}
