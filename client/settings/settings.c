#include "settings.h"

#include <ini.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"
#include "identity.h"
#include "num.h"

#define FILE_MAX_BYTES (1u << 20)
#define SECTION_MAX 49 /* libinih cuts longer ones silently */

enum kind { TEXT, URLS, MIRROR, U64, BYTES, SECONDS, SHARE, FORMAT, SPLIT, KIND, SHARD };

struct key {
	const char *name;
	enum kind kind;
	size_t at; /* offset of the value in its struct */
	double least, most; /* numbers */
	const char *format; /* [data]: the only format that knows the key; NULL: all */
};

#define S(field) offsetof(struct settings, field)
#define D(field) offsetof(struct settings_data, field)
#define T(field) offsetof(struct settings_trainer, field)

static const struct key coordinator_keys[] = {
    {"url", URLS, 0, 0, 0, NULL},
    {"model_mirror", MIRROR, S(mirror), 0, 0, NULL},
    {"mirror_timeout", SECONDS, S(mirror_timeout), 1, 3600, NULL},
    {NULL, TEXT, 0, 0, 0, NULL},
};
static const struct key device_keys[] = {
    {"threads", U64, S(threads), 0, 1024, NULL},
    {NULL, TEXT, 0, 0, 0, NULL},
};
static const struct key limit_keys[] = {
    {"model_bytes", BYTES, S(model_bytes), 1024, 1e15, NULL},
    {"memory_bytes", BYTES, S(memory_bytes), 1 << 20, 1e15, NULL},
    {"cache_bytes", BYTES, S(cache_bytes), 1024, 1e15, NULL},
    {"outbox_bytes", BYTES, S(outbox_bytes), 1024, 1e15, NULL},
    {"residual_bytes", BYTES, S(residual_bytes), 1024, 1e15, NULL},
    {"seconds_per_round", SECONDS, S(seconds_per_round), 0.001, 1e7, NULL},
    {"epochs", U64, S(epochs), 1, 1e6, NULL},
    {NULL, TEXT, 0, 0, 0, NULL},
};
static const struct key data_keys[] = {
    {"format", FORMAT, D(format), 0, 0, NULL},
    {"images", TEXT, D(images), 0, 0, "idx"},
    {"labels", TEXT, D(labels), 0, 0, "idx"},
    {"path", TEXT, D(path), 0, 0, "csv"},
    {"label", TEXT, D(label), 0, 0, "csv"},
    {"kind", KIND, D(regression), 0, 0, "csv"},
    {"classes", TEXT, D(classes), 0, 0, NULL},
    {"hand", U64, D(hand), 0, 9e15, "glyphs"},
    {"count", U64, D(glyph_count), 1, 1e7, "glyphs"},
    {"skew", SHARE, D(skew), 0, 1, "glyphs"},
    {"seed", U64, D(seed), 0, 9e15, NULL},
    {"shard", SHARD, D(shard), 0, 0, NULL},
    {"split", SPLIT, D(shard) + offsetof(struct shard, by_label), 0, 0, NULL},
    {"allow_jobs", TEXT, D(gate) + offsetof(struct gate, allow), 0, 0, NULL},
    {"deny_jobs", TEXT, D(gate) + offsetof(struct gate, deny), 0, 0, NULL},
    {NULL, TEXT, 0, 0, 0, NULL},
};
static const struct key trainer_keys[] = {
    {"exec", TEXT, T(exec), 0, 0, NULL},
    {"grace_s", SECONDS, T(grace_s), 0.1, 86400, NULL},
    {"allow_jobs", TEXT, T(gate) + offsetof(struct gate, allow), 0, 0, NULL},
    {"deny_jobs", TEXT, T(gate) + offsetof(struct gate, deny), 0, 0, NULL},
    {NULL, TEXT, 0, 0, 0, NULL},
};

static const char *const format_names[] = {"", "glyphs", "idx", "csv"};

/* A parse in progress; the first error stays. */
struct parse {
	struct settings *out;
	const char *name;
	const char *text;
	size_t left;
	unsigned line;
	uint64_t seen[3]; /* keys given in coordinator, device, limits */
	struct why *why;
	enum err failed;
};

static enum err
fail(struct parse *p, const char *section, const char *key, const char *what)
{
	if (!p->failed)
		p->failed = err_set(p->why, ERR_INVALID, "%s:%u: %s%s%s: %s", p->name, p->line,
		    section, key ? "." : "", key ? key : "", what);
	return ERR_INVALID;
}

/* What is wrong with value, or NULL. */
static const char *
set_number(const struct key *k, void *at, const char *value)
{
	double d;
	uint64_t u;

	if (k->kind == SECONDS || k->kind == SHARE) {
		if (!num_double(value, &d))
			return "not a number";
		if (d < k->least || d > k->most)
			return "out of range";
		*(double *)at = d;
		return NULL;
	}
	if (!(k->kind == BYTES ? num_bytes(value, &u) : num_u64(value, UINT64_MAX / 2, &u)))
		return k->kind == BYTES ? "not a size (a number, K, M or G behind it)"
					: "not a whole number";
	if ((double)u < k->least || (double)u > k->most)
		return "out of range";
	*(uint64_t *)at = u;
	return NULL;
}

static const char *
set_choice(bool *at, const char *value, const char *no, const char *yes)
{
	if (strcmp(value, no) != 0 && strcmp(value, yes) != 0)
		return "not one of the values it may have";
	*at = strcmp(value, yes) == 0;
	return NULL;
}

static const char *
set_format(enum settings_format *at, const char *value)
{
	for (int i = SETTINGS_GLYPHS; i <= SETTINGS_CSV; i++)
		if (strcmp(value, format_names[i]) == 0) {
			*at = (enum settings_format)i;
			return NULL;
		}
	return "not glyphs, idx or csv";
}

static const char *
set_shard(struct shard *at, const char *value)
{
	char first[16];
	const char *slash = strchr(value, '/');
	uint64_t i, n;

	if (!slash || (size_t)(slash - value) >= sizeof(first))
		return "not of the form i/n";
	memcpy(first, value, (size_t)(slash - value));
	first[slash - value] = '\0';
	if (!num_u64(first, UINT32_MAX, &i) || !num_u64(slash + 1, 1000000, &n))
		return "not of the form i/n";
	if (i < 1 || i > n)
		return "i must be from 1 to n";
	at->index = (uint32_t)i;
	at->count = (uint32_t)n;
	return NULL;
}

static const char *
add_urls(struct settings *s, const char *value, struct why *why)
{
	char word[SETTINGS_TEXT_MAX];

	for (const char *p = value + strspn(value, ", \t"); *p; p += strspn(p, ", \t")) {
		size_t len = strcspn(p, ", \t");
		if (s->url_count == SETTINGS_URLS_MAX)
			return "too many addresses";
		memcpy(word, p, len);
		word[len] = '\0';
		if (address_normalise(s->urls[s->url_count], word, why))
			return why->text;
		s->url_count++;
		p += len;
	}
	return NULL;
}

static const char *
set_value(struct parse *p, const struct key *k, void *base, const char *value, struct why *why)
{
	void *at = (char *)base + k->at;

	switch (k->kind) {
	case TEXT:
		strcpy(at, value);
		return NULL;
	case URLS:
		return add_urls(p->out, value, why);
	case MIRROR:
		return address_mirror(at, value, why) ? why->text : NULL;
	case U64:
	case BYTES:
	case SECONDS:
	case SHARE:
		return set_number(k, at, value);
	case FORMAT:
		return set_format(at, value);
	case SPLIT:
		return set_choice(at, value, "iid", "label");
	case KIND:
		return set_choice(at, value, "class", "regression");
	case SHARD:
		return set_shard(at, value);
	}
	return "unknown kind";
}

static enum err
set_key(struct parse *p, const struct key *keys, void *base, uint64_t *seen, const char *section,
    const char *name, const char *value)
{
	struct why why;

	for (unsigned i = 0; keys[i].name; i++) {
		if (strcmp(keys[i].name, name) != 0)
			continue;
		if ((*seen >> i & 1) && keys[i].kind != URLS)
			return fail(p, section, name, "given twice");
		*seen |= (uint64_t)1 << i;
		if (!*value)
			return fail(p, section, name, "has no value");
		if (strlen(value) >= SETTINGS_TEXT_MAX)
			return fail(p, section, name, "too long");
		const char *wrong = set_value(p, &keys[i], base, value, &why);
		return wrong ? fail(p, section, name, wrong) : ERR_OK;
	}
	return fail(p, section, name, "unknown key");
}

/* "data NAME" or "trainer NAME" with a good name? Then the name. */
static const char *
named(const char *section, const char *kind)
{
	size_t n = strlen(kind);
	const char *name = section + n + 1;

	if (strncmp(section, kind, n) != 0 || section[n] != ' ')
		return NULL;
	if (!*name || strlen(name) >= RECIPE_NAME_MAX ||
	    name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")])
		return NULL;
	return name;
}

static struct settings_data *
data_entry(struct parse *p, const char *name)
{
	struct settings *s = p->out;

	for (size_t i = 0; i < s->data_count; i++)
		if (strcmp(s->data[i].name, name) == 0)
			return &s->data[i];
	if (s->data_count == SETTINGS_DATA_MAX)
		return NULL;
	struct settings_data *d = &s->data[s->data_count++];
	strcpy(d->name, name);
	strcpy(d->label, "last");
	d->line = p->line;
	d->glyph_count = 600;
	d->seed = 1;
	d->shard = (struct shard){.index = 1, .count = 1};
	return d;
}

static struct settings_trainer *
trainer_entry(struct parse *p, const char *name)
{
	struct settings *s = p->out;

	for (size_t i = 0; i < s->trainer_count; i++)
		if (strcmp(s->trainers[i].name, name) == 0)
			return &s->trainers[i];
	if (s->trainer_count == SETTINGS_TRAINERS_MAX)
		return NULL;
	struct settings_trainer *t = &s->trainers[s->trainer_count++];
	strcpy(t->name, name);
	t->line = p->line;
	t->grace_s = 30;
	return t;
}

/* The section's table, struct and key mask; ERR_INVALID if there is no such section. */
static enum err
find_section(
    struct parse *p, const char *section, const struct key **keys, void **base, uint64_t **seen)
{
	static const char *const plain[] = {"coordinator", "device", "limits"};
	static const struct key *const tables[] = {coordinator_keys, device_keys, limit_keys};
	const char *name;

	for (size_t i = 0; i < 3; i++)
		if (strcmp(section, plain[i]) == 0) {
			*keys = tables[i];
			*base = p->out;
			*seen = &p->seen[i];
			return ERR_OK;
		}
	if ((name = named(section, "data"))) {
		struct settings_data *d = data_entry(p, name);
		*keys = data_keys;
		*base = d;
		if (!d)
			return fail(p, section, NULL, "too many data sets");
		*seen = &d->seen;
		return ERR_OK;
	}
	if ((name = named(section, "trainer"))) {
		struct settings_trainer *t = trainer_entry(p, name);
		*keys = trainer_keys;
		*base = t;
		if (!t)
			return fail(p, section, NULL, "too many trainers");
		*seen = &t->seen;
		return ERR_OK;
	}
	return fail(p, *section ? section : "(no section)", NULL, "unknown section");
}

static int
on_key(void *user, const char *section, const char *name, const char *value)
{
	struct parse *p = user;
	const struct key *keys = NULL;
	void *base = NULL;
	uint64_t *seen = NULL;

	if (p->failed || find_section(p, section, &keys, &base, &seen) || !seen)
		return 0;
	return set_key(p, keys, base, seen, section, name, value) == ERR_OK;
}

/* libinih does not report section heads without keys, so they are looked at here. */
static void
check_head(struct parse *p, const char *line)
{
	char section[SECTION_MAX + 1];
	const struct key *keys;
	void *base;
	uint64_t *seen;
	const char *end = strchr(line, ']');

	if (!end || p->failed)
		return;
	size_t len = (size_t)(end - line) - 1;
	if (len > SECTION_MAX) {
		fail(p, "section", NULL, "name too long");
		return;
	}
	memcpy(section, line + 1, len);
	section[len] = '\0';
	(void)!find_section(p, section, &keys, &base, &seen);
}

/* Hands libinih one line, as fgets would. */
static char *
on_line(char *out, int room, void *user)
{
	struct parse *p = user;
	const char *end = memchr(p->text, '\n', p->left);
	size_t len = end ? (size_t)(end - p->text) + 1 : p->left;

	if (len == 0 || p->failed)
		return NULL;
	p->line++;
	if (len >= (size_t)room || memchr(p->text, '\0', len)) {
		fail(p, "line", NULL, len >= (size_t)room ? "too long" : "holds a zero byte");
		return NULL;
	}
	/* Indentation goes, for libinih would take an indented line for more of the value before. */
	size_t skip = 0;
	while (skip < len && (p->text[skip] == ' ' || p->text[skip] == '\t'))
		skip++;
	memcpy(out, p->text + skip, len - skip);
	out[len - skip] = '\0';
	p->text += len;
	p->left -= len;
	if (*out == '[')
		check_head(p, out);
	return out;
}

static enum err
check_data(struct parse *p, struct settings_data *d)
{
	char section[RECIPE_NAME_MAX + 8];

	snprintf(section, sizeof(section), "data %s", d->name);
	p->line = d->line;
	if (d->format == SETTINGS_NO_FORMAT)
		return fail(p, section, "format", "missing");
	for (unsigned i = 0; data_keys[i].name; i++)
		if ((d->seen >> i & 1) && data_keys[i].format &&
		    strcmp(data_keys[i].format, format_names[d->format]) != 0)
			return fail(
			    p, section, data_keys[i].name, "does not belong to this format");
	if (d->format == SETTINGS_IDX && (!*d->images || !*d->labels))
		return fail(p, section, *d->images ? "labels" : "images", "missing");
	if (d->format == SETTINGS_CSV && !*d->path)
		return fail(p, section, "path", "missing");
	if (d->regression && d->shard.by_label)
		return fail(p, section, "split", "label does not go with kind = regression");
	d->shard.seed = d->seed;
	return ERR_OK;
}

static enum err
check_trainer(struct parse *p, const struct settings_trainer *t)
{
	char section[RECIPE_NAME_MAX + 8];

	snprintf(section, sizeof(section), "trainer %s", t->name);
	p->line = t->line;
	return *t->exec ? ERR_OK : fail(p, section, "exec", "missing");
}

static enum err
check_all(struct parse *p)
{
	struct settings *s = p->out;
	enum err e = ERR_OK;

	for (size_t i = 0; !e && i < s->data_count; i++)
		e = check_data(p, &s->data[i]);
	for (size_t i = 0; !e && i < s->trainer_count; i++)
		e = check_trainer(p, &s->trainers[i]);
	if (s->model_bytes > s->cache_bytes)
		s->model_bytes = s->cache_bytes;
	return e;
}

enum err
settings_parse(
    struct settings **out, const char *name, const char *text, size_t len, struct why *why)
{
	struct settings *s = calloc(1, sizeof(*s));
	struct parse p = {.out = s, .name = name, .text = text, .left = len, .why = why};

	if (!s)
		return err_set(why, ERR_NOMEM, "no memory for settings");
	s->model_bytes = (uint64_t)1 << 30;
	s->cache_bytes = (uint64_t)2 << 30;
	s->mirror_timeout = 60;
	s->outbox_bytes = (uint64_t)2 << 30;
	s->residual_bytes = (uint64_t)2 << 30;
	snprintf(s->file, sizeof(s->file), "%s", name);
	int line = ini_parse_stream(on_line, &p, on_key, &p);
	if (line != 0 && !p.failed) {
		p.line = line > 0 ? (unsigned)line : p.line;
		fail(&p, "line", NULL, "not of the form key = value");
	}
	if (p.failed || check_all(&p)) {
		settings_free(s);
		return p.failed;
	}
	*out = s;
	return ERR_OK;
}

enum err
settings_load(struct settings **out, const char *home, const char *config, struct why *why)
{
	char path[PATH_MAX];
	char *text = NULL;
	size_t len = 0;
	enum err e = ERR_OK;

	if (!config)
		e = identity_path(path, home, "rivulet.conf", why);
	if (!e)
		e = file_read(config ? config : path, FILE_MAX_BYTES, &text, &len, why);
	if (e == ERR_NOTFOUND && !config)
		return settings_parse(out, "", "", 0, why);
	if (!e)
		e = settings_parse(out, config ? config : path, text, len, why);
	free(text);
	return e;
}

void
settings_free(struct settings *s)
{
	free(s);
}

const struct settings_data *
settings_find_data(const struct settings *s, const char *name)
{
	for (size_t i = 0; i < s->data_count; i++)
		if (strcmp(s->data[i].name, name) == 0)
			return &s->data[i];
	return NULL;
}

const struct settings_trainer *
settings_find_trainer(const struct settings *s, const char *name)
{
	for (size_t i = 0; i < s->trainer_count; i++)
		if (strcmp(s->trainers[i].name, name) == 0)
			return &s->trainers[i];
	return NULL;
}
