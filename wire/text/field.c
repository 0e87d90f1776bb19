#include "field.h"

#include "json_scan.h"
#include "shown.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_MAX_TEXT 160
#define LABEL_MAX 48
/* Longer keys are not compared with known ones. */
#define SIMILAR_MAX 40

/* Appends to a path, cutting it when it is full. */
__attribute__((format(printf, 2, 3))) static void
path_add(char *path, const char *fmt, ...)
{
	size_t len = strlen(path);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path + len, PATH_MAX_TEXT - len, fmt, ap);
	va_end(ap);
}

static void
path_key(char *path, const char *key)
{
	char label[LABEL_MAX];

	json_scan_label(label, sizeof(label), key);
	path_add(path, "%s%s", path[0] ? "." : "", label);
}

/* Recursion is bounded by the depth of the document. */
static void
path_of(char *path, const struct field *f)
{
	if (!f->parent) {
		path[0] = '\0';
		return;
	}
	path_of(path, f->parent);
	if (f->key)
		path_key(path, f->key);
	else
		path_add(path, "[%zu]", f->index);
}

bool
field_fail(const struct field *o, const char *key, const char *fmt, ...)
{
	char path[PATH_MAX_TEXT], text[160];
	va_list ap;

	if (o->reader->err)
		return false;
	path_of(path, o);
	if (key)
		path_key(path, key);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	o->reader->err =
	    err_set(o->reader->why, ERR_INVALID, "%s%s%s", path, path[0] ? ": " : "", text);
	return false;
}

void
field_no_memory(const struct field *o)
{
	if (!o->reader->err)
		o->reader->err = err_set(o->reader->why, ERR_NOMEM, "out of memory");
}

static size_t
smallest(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;

	return m < c ? m : c;
}

/* Typing mistakes between texts of at most SIMILAR_MAX characters: one left out, added, changed, or two that changed
 * places. Three rows of the table are kept, each in its turn. */
static size_t
distance(const char *a, const char *b)
{
	size_t rows[3][SIMILAR_MAX + 1], n = strlen(b), i;

	for (size_t j = 0; j <= n; j++)
		rows[0][j] = j;
	for (i = 1; a[i - 1]; i++) {
		size_t *now = rows[i % 3], *up = rows[(i + 2) % 3], *above = rows[(i + 1) % 3];
		now[0] = i;
		for (size_t j = 1; j <= n; j++) {
			now[j] =
			    smallest(now[j - 1] + 1, up[j] + 1, up[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = smallest(now[j], now[j], above[j - 2] + 1);
		}
	}
	return rows[(i + 2) % 3][n];
}

/* Distance of keys near enough for one to be meant by the other, 0 if they are not: two changes make any short word
 * of another. */
static size_t
nearness(const char *a, const char *b)
{
	size_t la = strlen(a), lb = strlen(b), d;

	if (la > SIMILAR_MAX || lb > SIMILAR_MAX)
		return 0;
	d = distance(a, b);
	return d <= 2 && 2 * d < (la > lb ? la : lb) ? d : 0;
}

static bool
is_known(const struct field *o, const char *key)
{
	for (size_t i = 0; i < o->known_count; i++)
		if (strcmp(o->known[i], key) == 0)
			return true;
	return false;
}

/* What the key means here: a key of this place, else a path that leads elsewhere, or NULL. */
static const char *
find_synonym(const struct field *o, const char *key)
{
	const char *elsewhere = NULL;

	for (const struct field_synonym *s = o->reader->synonyms; s && s->written; s++) {
		if (strcmp(s->written, key) != 0)
			continue;
		const char *dot = strrchr(s->meant, '.');
		const char *last = dot ? dot + 1 : s->meant;
		if (is_known(o, last))
			return last;
		bool is_other = strncmp(s->meant, FIELD_ELSEWHERE, strlen(FIELD_ELSEWHERE)) == 0;
		if ((dot || is_other) && !elsewhere)
			elsewhere = s->meant;
	}
	return elsewhere;
}

static const char *
find_similar(const struct field *o, const char *key)
{
	const char *meant = NULL;
	size_t best = SIMILAR_MAX;

	for (size_t i = 0; i < o->known_count; i++) {
		size_t d = nearness(o->known[i], key);
		if (d && d < best) {
			best = d;
			meant = o->known[i];
		}
	}
	return meant;
}

static void
fail_unknown(const struct field *o, const char *key)
{
	const char *meant = find_synonym(o, key);

	if (!meant)
		meant = find_similar(o, key);
	if (meant && strncmp(meant, FIELD_ELSEWHERE, strlen(FIELD_ELSEWHERE)) == 0)
		field_fail(
		    o, key, "unknown key: it belongs in %s", meant + strlen(FIELD_ELSEWHERE));
	else if (meant)
		field_fail(o, key, "unknown key (did you mean \"%s\"?)", meant);
	else
		field_fail(o, key, "unknown key");
}

void
field_end(const struct field *o)
{
	if (!o->reader->strict)
		return;
	for (const struct json *m = json_first(o->value); m && !o->reader->err; m = json_next(m))
		if (!is_known(o, json_key(m)))
			fail_unknown(o, json_key(m));
}

/* Is `key` at o, or its synonym there or further up, meant by another key, which nobody reads? */
static void
look_for_other(const struct field *o, const char *key)
{
	char path[PATH_MAX_TEXT];

	path_of(path, o);
	path_key(path, key);
	for (const struct field *at = o; at; at = at->parent) {
		const struct json *m =
		    json_kind(at->value) == JSON_OBJECT ? json_first(at->value) : NULL;
		for (; m; m = json_next(m)) {
			const char *meant =
			    is_known(at, json_key(m)) ? NULL : find_synonym(at, json_key(m));
			if (meant && strcmp(meant, at == o ? key : path) == 0)
				fail_unknown(at, json_key(m));
			else if (at == o && !is_known(o, json_key(m)) && nearness(json_key(m), key))
				fail_unknown(o, json_key(m));
		}
	}
}

/* A key that must be there is more often misspelt, or written elsewhere, than forgotten. */
static void
fail_missing(const struct field *o, const char *key)
{
	if (o->reader->strict && key)
		look_for_other(o, key);
	field_fail(o, key, "missing");
}

static void
learn(struct field *o, const char *key)
{
	if (is_known(o, key))
		return;
	assert(o->known_count < FIELD_KEYS_MAX);
	o->known[o->known_count++] = key;
}

/* The value to read: NULL if absent or after an error. */
static const struct json *
value(struct field *o, const char *key)
{
	const struct json *v = o->value;

	if (key) {
		learn(o, key);
		v = json_get(o->value, key);
	}
	if (o->reader->err || (v && !o->reader->strict && json_kind(v) == JSON_NULL))
		return NULL;
	return v;
}

bool
field_has(struct field *o, const char *key)
{
	return value(o, key) != NULL;
}

struct field
field_root(struct field_reader *r, const struct json *v)
{
	struct field f = {.reader = r, .value = v};

	if (json_kind(v) != JSON_OBJECT)
		field_fail(&f, NULL, "must be a JSON object");
	return f;
}

struct field
field_object(struct field *parent, const char *key)
{
	struct field f = {
	    .reader = parent->reader,
	    .parent = key ? parent : parent->parent,
	    .key = key ? key : parent->key,
	    .index = parent->index,
	    .value = value(parent, key),
	};

	if (f.value && json_kind(f.value) != JSON_OBJECT)
		field_fail(&f, NULL, "must be an object");
	return f;
}

uint64_t
field_u64(struct field *o, const char *key, uint64_t min, uint64_t max, uint64_t def)
{
	const struct json *v = value(o, key);
	uint64_t n = 0;

	if (!v) {
		if (def == FIELD_MUST_U64)
			fail_missing(o, key);
		return def == FIELD_MUST_U64 ? min : def;
	}
	if (json_u64(v, &n) && n >= min && n <= max)
		return n;
	field_fail(o, key, "must be a whole number from %llu to %llu", (unsigned long long)min,
	    (unsigned long long)max);
	return min;
}

int64_t
field_i64(struct field *o, const char *key, int64_t min, int64_t max, int64_t def)
{
	const struct json *v = value(o, key);
	double d = 0;

	if (!v)
		return def;
	if (json_double(v, &d) && d == floor(d) && d >= (double)min && d <= (double)max)
		return (int64_t)d;
	field_fail(
	    o, key, "must be a whole number from %lld to %lld", (long long)min, (long long)max);
	return def;
}

double
field_double(struct field *o, const char *key, double min, double max, double def)
{
	const struct json *v = value(o, key);
	double d = 0;

	if (!v) {
		if (isnan(def))
			fail_missing(o, key);
		return isnan(def) ? min : def;
	}
	if (json_double(v, &d) && d >= min && d <= max)
		return d;
	field_fail(o, key, "must be a number from %g to %g", min, max);
	return min;
}

bool
field_bool(struct field *o, const char *key, bool def)
{
	const struct json *v = value(o, key);
	bool b = def;

	if (v && !json_bool(v, &b))
		field_fail(o, key, "must be true or false");
	return b;
}

static void
fail_choice(const struct field *o, const char *key, const char *const *names)
{
	char list[120] = "";

	for (size_t i = 0; names[i]; i++) {
		size_t len = strlen(list);
		snprintf(list + len, sizeof(list) - len, "%s\"%s\"", i ? ", " : "", names[i]);
	}
	field_fail(o, key, "must be one of %s", list);
}

int
field_choice(struct field *o, const char *key, const char *const *names, int def)
{
	const struct json *v = value(o, key);
	const char *text = json_string(v);

	if (!v) {
		if (def == FIELD_MUST_CHOICE)
			fail_missing(o, key);
		return def == FIELD_MUST_CHOICE ? 0 : def;
	}
	for (int i = 0; text && names[i]; i++)
		if (strcmp(names[i], text) == 0)
			return i;
	fail_choice(o, key, names);
	return 0;
}

static bool
fits(const unsigned char *p, size_t n, enum field_text kind)
{
	if (kind == FIELD_NAME)
		return n == 1 &&
		    (strchr("_.-", *p) || (*p >= '0' && *p <= '9') || (*p >= 'A' && *p <= 'Z') ||
			(*p >= 'a' && *p <= 'z'));
	if (kind == FIELD_TEXT || kind == FIELD_SHOWN_TEXT)
		return shown_char((const char *)p, n) > 0 || *p == '\n' || *p == '\t';
	return shown_char((const char *)p, n) > 0;
}

/* Copies whole characters; false if there is one that does not fit the kind or no room for it. */
static bool
copy_text(char *out, size_t room, const char *text, enum field_text kind)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t left = strlen(text), at = 0, n;
	bool shown = kind == FIELD_SHOWN || kind == FIELD_SHOWN_TEXT;

	out[0] = '\0';
	for (; left > 0; p += n, left -= n) {
		n = json_scan_utf8(p, left);
		bool ok = n > 0 && fits(p, n, kind);
		if (at + (ok ? n : 1) >= room)
			return shown;
		if (!ok && !shown)
			return false;
		n = n ? n : 1;
		memcpy(out + at, ok ? (const char *)p : "?", ok ? n : 1);
		at += ok ? n : 1;
		out[at] = '\0';
	}
	return kind != FIELD_NAME || at > 0;
}

void
field_show(char *out, size_t room, const char *text, enum field_text kind)
{
	copy_text(out, room, text, kind);
}

static const char *
wanted(enum field_text kind)
{
	switch (kind) {
	case FIELD_NAME:
		return "letters, digits, '_', '.' and '-'";
	case FIELD_TEXT:
		return "printable text with newlines";
	default:
		return "printable text";
	}
}

void
field_string(
    struct field *o, const char *key, enum field_text kind, char *out, size_t room, const char *def)
{
	const struct json *v = value(o, key);
	const char *text = json_string(v);

	out[0] = '\0';
	if (!v && def) {
		snprintf(out, room, "%s", def);
		return;
	}
	if (!v) {
		fail_missing(o, key);
		return;
	}
	if (text && copy_text(out, room, text, kind))
		return;
	out[0] = '\0';
	if (!text)
		field_fail(o, key, "must be a string");
	else if (strlen(text) >= room)
		field_fail(o, key, "longer than %zu bytes", room - 1);
	else
		field_fail(o, key, "must be %s", wanted(kind));
}

void
field_hex(struct field *o, const char *key, char *out, size_t room, const char *def)
{
	const struct json *v = value(o, key);
	const char *text = json_string(v);

	out[0] = '\0';
	if (!v) {
		if (!def)
			fail_missing(o, key);
		else
			snprintf(out, room, "%s", def);
		return;
	}
	if (text && strlen(text) == room - 1 && strspn(text, "0123456789abcdef") == room - 1)
		memcpy(out, text, room);
	else
		field_fail(o, key, "must be %zu lower-case hex digits", room - 1);
}

static size_t
open_list(struct field_list *l, struct field *o, const char *key, enum json_kind kind)
{
	const struct json *v = value(o, key);

	*l = (struct field_list){.self = {.reader = o->reader,
				     .parent = key ? o : o->parent,
				     .key = key ? key : o->key,
				     .index = o->index,
				     .value = v}};
	if (v && json_kind(v) != kind) {
		field_fail(o, key, "must be an %s", kind == JSON_ARRAY ? "array" : "object");
		return 0;
	}
	l->next = json_first(v);
	return json_count(v);
}

size_t
field_array(struct field_list *l, struct field *o, const char *key, size_t min, size_t max)
{
	size_t n = open_list(l, o, key, JSON_ARRAY);

	if (!l->self.value) {
		if (min > 0)
			fail_missing(o, key);
		return 0;
	}
	if (n < min || n > max)
		field_fail(o, key, "must have %zu to %zu items", min, max);
	return o->reader->err ? 0 : n;
}

size_t
field_map(struct field_list *l, struct field *o, const char *key, size_t max)
{
	size_t n = open_list(l, o, key, JSON_OBJECT);

	if (n > max)
		field_fail(o, key, "must have at most %zu keys", max);
	return o->reader->err ? 0 : n;
}

bool
field_each(struct field_list *l, struct field *item)
{
	if (!l->next || l->self.reader->err)
		return false;
	bool member = json_kind(l->self.value) == JSON_OBJECT;
	*item = (struct field){
	    .reader = l->self.reader,
	    .parent = &l->self,
	    .key = member ? json_key(l->next) : NULL,
	    .index = l->index++,
	    .value = l->next,
	};
	l->next = json_next(l->next);
	return true;
}

void
field_member(const struct field *item, enum field_text kind, char *out, size_t room)
{
	const char *key = item->key ? item->key : "";

	if (copy_text(out, room, key, kind) && out[0])
		return;
	out[0] = '\0';
	field_fail(item, NULL, "a key of at most %zu bytes must be %s", room - 1, wanted(kind));
}
