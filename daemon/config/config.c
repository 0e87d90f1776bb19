#include "config.h"

#include <arpa/inet.h>
#include <ini.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "endpoint.h"
#include "file.h"
#include "num.h"

#define CONFIG_FILE_MAX (1u << 20)
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

struct key;
typedef enum err (*setter)(const struct key *k, void *field, const char *value, struct why *why);

enum section { NO_SECTION, SERVER, LIMITS, SPOOL, RETENTION, AUDIT, IDENTITY, DATA, SECTIONS };
static const char *const section_names[SECTIONS] = {
    "", "server", "limits", "spool", "retention", "audit", "identity", "data"};

/* For the keys of [data NAME]: the formats that know them, and those that cannot do without. */
enum { IN_GLYPHS = 1 << CONFIG_GLYPHS, IN_IDX = 1 << CONFIG_IDX, IN_CSV = 1 << CONFIG_CSV };

struct key {
	enum section section;
	const char *name;
	setter set;
	size_t offset, size; /* in struct config, or in struct config_data for DATA */
	uint64_t min, max; /* of numbers */
	const char *fallback; /* written like a value; NULL: none */
	unsigned formats, required;
};

static enum err
set_number(const struct key *k, void *field, const char *value, struct why *why)
{
	uint64_t v;

	if (!num_u64(value, k->max, &v) || v < k->min)
		return err_set(why, ERR_INVALID,
		    "\"%.40s\" is not a whole number from %" PRIu64 " to %" PRIu64, value, k->min,
		    k->max);
	if (k->size == sizeof(uint64_t))
		memcpy(field, &v, sizeof(v));
	else
		memcpy(field, &(uint32_t){(uint32_t)v}, sizeof(uint32_t));
	return ERR_OK;
}

static enum err
set_bytes(const struct key *k, void *field, const char *value, struct why *why)
{
	uint64_t v;

	if (!num_bytes(value, &v) || v < k->min || v > k->max)
		return err_set(why, ERR_INVALID,
		    "\"%.40s\" is not a size from %" PRIu64 " to %" PRIu64
		    " bytes (K, M or G may follow the number)",
		    value, k->min, k->max);
	if (k->size == sizeof(uint64_t))
		memcpy(field, &v, sizeof(v));
	else
		memcpy(field, &(uint32_t){(uint32_t)v}, sizeof(uint32_t));
	return ERR_OK;
}

static enum err
set_seconds(const struct key *k, void *field, const char *value, struct why *why)
{
	uint64_t v;

	if (!num_seconds(value, &v) || v < k->min || v > k->max)
		return err_set(why, ERR_INVALID,
		    "\"%.40s\" is not a time from %" PRIu64 " to %" PRIu64
		    " seconds (s, m, h or d may follow the number)",
		    value, k->min, k->max);
	memcpy(field, &v, sizeof(v));
	return ERR_OK;
}

static enum err
set_text(const struct key *k, void *field, const char *value, struct why *why)
{
	size_t len = strlen(value);

	if (len == 0)
		return err_set(why, ERR_INVALID, "is empty");
	if (len >= k->size)
		return err_set(why, ERR_INVALID, "is longer than %zu bytes", k->size - 1);
	memcpy(field, value, len + 1);
	return ERR_OK;
}

static enum err
set_text_or_off(const struct key *k, void *field, const char *value, struct why *why)
{
	if (strcmp(value, "off") != 0)
		return set_text(k, field, value, why);
	*(char *)field = '\0';
	return ERR_OK;
}

/* One of two words; the fallback is that for false. */
static enum err
set_switch(const struct key *k, void *field, const char *value, struct why *why)
{
	static const char *const words[][2] = {
	    {"no", "yes"}, {"class", "regression"}, {"durable", "memory"}};
	size_t i = 0;

	while (i + 1 < sizeof(words) / sizeof(words[0]) && strcmp(words[i][0], k->fallback) != 0)
		i++;
	*(bool *)field = strcmp(value, words[i][1]) == 0;
	if (*(bool *)field || strcmp(value, words[i][0]) == 0)
		return ERR_OK;
	return err_set(
	    why, ERR_INVALID, "\"%.40s\" is not %s or %s", value, words[i][0], words[i][1]);
}

static enum err
set_log_level(const struct key *k, void *field, const char *value, struct why *why)
{
	(void)k;
	if (!log_level_find(value, field))
		return err_set(
		    why, ERR_INVALID, "\"%.40s\" is not error, warn, info or debug", value);
	return ERR_OK;
}

static enum err
set_format(const struct key *k, void *field, const char *value, struct why *why)
{
	static const char *const names[] = {
	    [CONFIG_GLYPHS] = "glyphs", [CONFIG_IDX] = "idx", [CONFIG_CSV] = "csv"};

	(void)k;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(value, names[i]) == 0) {
			*(enum config_format *)field = (enum config_format)i;
			return ERR_OK;
		}
	}
	return err_set(why, ERR_INVALID, "\"%.40s\" is not glyphs, idx or csv", value);
}

/* field is the count; the entries are reached from it because the table knows one offset. */
static enum err
set_listen(const struct key *k, void *field, const char *value, struct why *why)
{
	struct config *c = (struct config *)(void *)((char *)field - k->offset);

	if (c->listen_count == CONFIG_LISTEN_MAX)
		return err_set(why, ERR_LIMIT, "more than %d addresses", CONFIG_LISTEN_MAX);
	if (!endpoint_parse(value, &c->listen[c->listen_count]))
		return err_set(why, ERR_INVALID,
		    "\"%.60s\" is not ADDRESS:PORT, [IPV6-ADDRESS]:PORT or PORT", value);
	c->listen_count++;
	return ERR_OK;
}

static enum err
set_proxy(const struct key *k, void *field, const char *value, struct why *why)
{
	struct config *c = (struct config *)(void *)((char *)field - k->offset);

	if (c->proxy_count == CONFIG_PROXIES_MAX)
		return err_set(why, ERR_LIMIT, "more than %d ranges", CONFIG_PROXIES_MAX);
	if (!subnet_parse(&c->proxies[c->proxy_count], value))
		return err_set(why, ERR_INVALID, "\"%.60s\" is not ADDRESS or ADDRESS/BITS", value);
	c->proxy_count++;
	return ERR_OK;
}

/* Plain HTTP is for this host alone. */
static enum err
set_probe(const struct key *k, void *field, const char *value, struct why *why)
{
	struct config_listen *l = field;

	(void)k;
	memset(l, 0, sizeof(*l));
	if (strcmp(value, "off") == 0)
		return ERR_OK;
	if (!endpoint_parse(value, l) ||
	    !(strncmp(l->host, "127.", 4) == 0 || strcmp(l->host, "::1") == 0))
		return err_set(why, ERR_INVALID,
		    "\"%.60s\" is not 127.0.0.1:PORT, [::1]:PORT or off: it is plain HTTP", value);
	return ERR_OK;
}

#define IN(type, member) offsetof(struct type, member), sizeof(((struct type *)0)->member)
#define KI ((uint64_t)1 << 10)
#define MI ((uint64_t)1 << 20)
#define GI ((uint64_t)1 << 30)
#define DAY 86400

/* clang-format off */
static const struct key keys[] = {
    {SERVER, "listen", set_listen, IN(config, listen_count), 0, 0, "7443", 0, 0},
    {SERVER, "state_dir", set_text, IN(config, state_dir), 0, 0, "/var/lib/rivulet", 0, 0},
    {SERVER, "admin_socket", set_text_or_off, IN(config, admin_socket), 0, 0, "/run/rivulet/admin.sock", 0, 0},
    {SERVER, "proxy_from", set_proxy, IN(config, proxy_count), 0, 0, NULL, 0, 0},
    {SERVER, "probe_listen", set_probe, IN(config, probe), 0, 0, "off", 0, 0},
    {SERVER, "io_threads", set_number, IN(config, io_threads), 0, 256, "0", 0, 0},
    {SERVER, "worker_threads", set_number, IN(config, worker_threads), 0, 256, "0", 0, 0},
    {SERVER, "log_level", set_log_level, IN(config, log_level), 0, 0, "info", 0, 0},
    {LIMITS, "connections", set_number, IN(config, connections), 1, 1000000, "10000", 0, 0},
    {LIMITS, "header_bytes", set_bytes, IN(config, header_bytes), 2 * KI, 64 * KI, "32K", 0, 0},
    {LIMITS, "json_bytes", set_bytes, IN(config, json_bytes), 8 * KI, 64 * MI, "1M", 0, 0},
    {LIMITS, "model_bytes", set_bytes, IN(config, model_bytes), KI, 1024 * GI, "4G", 0, 0},
    {LIMITS, "header_timeout", set_number, IN(config, header_timeout_s), 1, 600, "10", 0, 0},
    {LIMITS, "idle_timeout", set_number, IN(config, idle_timeout_s), 1, DAY, "75", 0, 0},
    {LIMITS, "slow_upload_bytes", set_bytes, IN(config, slow_upload_bytes), 1, GI, "1K", 0, 0},
    {LIMITS, "slow_upload_time", set_number, IN(config, slow_upload_s), 1, 3600, "60", 0, 0},
    {LIMITS, "long_poll", set_number, IN(config, long_poll_s), 1, 50, "50", 0, 0},
    {LIMITS, "handshakes", set_number, IN(config, handshakes), 1, 100000, "256", 0, 0},
    {LIMITS, "handshakes_per_address", set_number, IN(config, handshakes_per_address), 1, 100000, "64", 0, 0},
    {LIMITS, "failures_per_minute", set_number, IN(config, failures_per_minute), 0, 1000000, "300", 0, 0},
    {LIMITS, "requests_per_minute", set_number, IN(config, requests_per_minute), 0, 100000000, "12000", 0, 0},
    {LIMITS, "connections_per_device", set_number, IN(config, connections_per_device), 1, 1000000, "64", 0, 0},
    {LIMITS, "strangers_cpu", set_number, IN(config, strangers_cpu), 1, 100, "30", 0, 0},
    {LIMITS, "retry_after", set_number, IN(config, retry_after_s), 1, DAY, "5", 0, 0},
    {SPOOL, "quota", set_bytes, IN(config, spool_quota), 0, INT64_MAX, "0", 0, 0},
    {SPOOL, "mode", set_switch, IN(config, spool_memory), 0, 0, "durable", 0, 0},
    {SPOOL, "path", set_text, IN(config, spool_path), 0, 0, NULL, 0, 0},
    {SPOOL, "key_file", set_text, IN(config, spool_key_file), 0, 0, NULL, 0, 0},
    {SPOOL, "part_time", set_seconds, IN(config, spool_part_s), 1, 365 * DAY, "1h", 0, 0},
    {RETENTION, "keep_last", set_number, IN(config, keep_last), 1, 1000000, "3", 0, 0},
    {RETENTION, "keep_every", set_number, IN(config, keep_every), 0, 1000000, "10", 0, 0},
    {RETENTION, "keep_deltas", set_switch, IN(config, keep_deltas), 0, 0, "no", 0, 0},
    {RETENTION, "keep_deltas_bytes", set_bytes, IN(config, keep_deltas_bytes), 0, INT64_MAX, "16G", 0, 0},
    {AUDIT, "refusals", set_number, IN(config, audit_refusals_s), 1, DAY, "600", 0, 0},
    {IDENTITY, "device_validity", set_seconds, IN(config, device_validity_s), 1, 36500ull * DAY, "365d", 0, 0},
    {DATA, "format", set_format, IN(config_data, format), 0, 0, NULL, 0, 0},
    {DATA, "images", set_text, IN(config_data, images), 0, 0, NULL, IN_IDX, IN_IDX},
    {DATA, "labels", set_text, IN(config_data, labels), 0, 0, NULL, IN_IDX, IN_IDX},
    {DATA, "path", set_text, IN(config_data, path), 0, 0, NULL, IN_CSV, IN_CSV},
    {DATA, "label", set_text, IN(config_data, label), 0, 0, NULL, IN_CSV, IN_CSV},
    {DATA, "kind", set_switch, IN(config_data, regression), 0, 0, "class", IN_CSV, 0},
    {DATA, "seed", set_number, IN(config_data, seed), 0, UINT64_MAX, "0", IN_GLYPHS, 0},
    {DATA, "first_hand", set_number, IN(config_data, first_hand), 0, 4000000000, "1000000", IN_GLYPHS, 0},
    {DATA, "hands", set_number, IN(config_data, hands), 1, 1000000, "50", IN_GLYPHS, 0},
    {DATA, "count", set_number, IN(config_data, count), 1, 10000000, "2000", IN_GLYPHS, 0},
};
/* clang-format on */
enum { KEYS = sizeof(keys) / sizeof(keys[0]) };

struct parser {
	struct config *c;
	const char *file; /* for messages */
	const char *at, *end; /* text not read yet */
	int line, section_line;
	enum section section;
	bool seen[KEYS]; /* for DATA: in the present section only */
	bool failed;
	int failed_line;
	struct why *why;
};

static void
apply_defaults(void *base, enum section from, enum section to)
{
	for (const struct key *k = keys; k < keys + KEYS; k++) {
		if (k->section < from || k->section > to || !k->fallback)
			continue;
		enum err e = k->set(k, (char *)base + k->offset, k->fallback, NULL);
		(void)e; /* The tests hold every default against its own range. */
	}
}

void
config_defaults(struct config *c)
{
	memset(c, 0, sizeof(*c));
	apply_defaults(c, SERVER, IDENTITY);
}

const struct config_data *
config_data_find(const struct config *c, const char *name)
{
	for (size_t i = 0; i < c->data_count; i++) {
		if (strcmp(c->data[i].name, name) == 0)
			return &c->data[i];
	}
	return NULL;
}

/* Levenshtein distance, for short names. */
static size_t
distance(const char *a, const char *b)
{
	size_t row[32], m = strlen(a), n = strlen(b);

	if (m > 31 || n > 31)
		return SIZE_MAX;
	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 1; i <= m; i++) {
		size_t diagonal = row[0];
		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			size_t best = diagonal + (a[i - 1] != b[j - 1]);
			diagonal = row[j];
			best = row[j] + 1 < best ? row[j] + 1 : best;
			row[j] = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
		}
	}
	return row[n];
}

static void __attribute__((format(printf, 3, 4)))
complain(struct parser *p, int line, const char *fmt, ...)
{
	char text[192];
	va_list ap;

	if (p->failed)
		return;
	p->failed = true;
	p->failed_line = line;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	err_set(p->why, ERR_INVALID, "%s:%d: %s", p->file, line, text);
}

/* The present section as messages show it, without brackets. */
static const char *
section_text(const struct parser *p, char out[80])
{
	const char *name = p->section == DATA ? p->c->data[p->c->data_count - 1].name : "";

	snprintf(out, 80, "%s%s%s", section_names[p->section], *name ? " " : "", name);
	return out;
}

/* Says which keys of a finished [data NAME] are missing or belong to another format. */
static void
finish_section(struct parser *p)
{
	char section[80];

	if (p->section != DATA)
		return;
	unsigned format = 1u << p->c->data[p->c->data_count - 1].format;
	for (size_t i = 0; i < KEYS; i++) {
		const struct key *k = &keys[i];
		if (k->section != DATA)
			continue;
		if (!p->seen[i] && (k->set == set_format || k->required & format))
			complain(p, p->section_line, "[%s] %s: is missing",
			    section_text(p, section), k->name);
		if (p->seen[i] && k->formats && !(k->formats & format))
			complain(p, p->section_line, "[%s] %s: does not belong to this format",
			    section_text(p, section), k->name);
	}
}

static void
start_data(struct parser *p, const char *name)
{
	struct config *c = p->c;
	size_t len = strlen(name);

	if (len == 0 || len >= sizeof(c->data[0].name) || strspn(name, NAME_CHARS) != len) {
		complain(p, p->line,
		    "[data %.70s]: a name has 1 to %zu of the characters A-Z a-z 0-9 . _ -", name,
		    sizeof(c->data[0].name) - 1);
		return;
	}
	if (config_data_find(c, name)) {
		complain(p, p->line, "[data %s]: given twice", name);
		return;
	}
	if (c->data_count == CONFIG_DATA_MAX) {
		complain(p, p->line, "[data %s]: more than %d data sets", name, CONFIG_DATA_MAX);
		return;
	}
	struct config_data *d = &c->data[c->data_count++];
	memset(d, 0, sizeof(*d));
	memcpy(d->name, name, len + 1);
	apply_defaults(d, DATA, DATA);
	for (size_t i = 0; i < KEYS; i++)
		p->seen[i] = p->seen[i] && keys[i].section != DATA;
	p->section = DATA;
}

static void
unknown_section(struct parser *p, const char *name)
{
	for (enum section s = SERVER; s < SECTIONS; s++) {
		if (distance(name, section_names[s]) <= 2) {
			complain(p, p->line, "[%s]: unknown section (did you mean [%s%s]?)", name,
			    section_names[s], s == DATA ? " NAME" : "");
			return;
		}
	}
	complain(p, p->line, "[%.60s]: unknown section", name);
}

/*
 * inih cuts section names at 49 bytes, ignores what follows the bracket and is silent about sections without keys,
 * so the reader takes the headers itself. line starts with a bracket.
 */
static void
start_section(struct parser *p, const char *line, size_t len)
{
	char name[128];
	const char *close = memchr(line, ']', len);
	size_t name_len = close ? (size_t)(close - line) - 1 : 0;

	finish_section(p);
	p->section = NO_SECTION;
	p->section_line = p->line;
	if (!close || name_len >= sizeof(name)) {
		complain(p, p->line, "not a [section]");
		return;
	}
	for (const char *s = close + 1; s < line + len && *s != ';' && *s != '#'; s++) {
		if (*s != ' ' && *s != '\t') {
			complain(p, p->line, "something follows the section's bracket");
			return;
		}
	}
	memcpy(name, line + 1, name_len);
	name[name_len] = '\0';
	if (strncmp(name, "data ", 5) == 0) {
		start_data(p, name + 5 + strspn(name + 5, " "));
		return;
	}
	for (enum section s = SERVER; s < DATA; s++) {
		if (strcmp(name, section_names[s]) == 0)
			p->section = s;
	}
	if (p->section == NO_SECTION)
		unknown_section(p, name);
}

static bool
has_control(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (((unsigned char)s[i] < ' ' && s[i] != '\t') || s[i] == 0x7f)
			return true;
	}
	return false;
}

/*
 * Gives inih one line at a time and counts them. Leading blanks go because inih would take an indented line for the
 * continuation of the value before; a line that does not fit fails because inih would cut it or split it in two.
 */
static char *
next_line(char *out, int room, void *stream)
{
	struct parser *p = stream;

	if (p->failed || p->at == p->end)
		return NULL;
	const char *s = p->at;
	const char *newline = memchr(s, '\n', (size_t)(p->end - s));
	const char *end = newline ? newline : p->end;
	p->at = newline ? newline + 1 : p->end;
	p->line++;
	while (end > s && (end[-1] == '\r' || end[-1] == ' ' || end[-1] == '\t'))
		end--;
	while (s < end && (*s == ' ' || *s == '\t'))
		s++;
	size_t len = (size_t)(end - s);
	if (has_control(s, len))
		complain(p, p->line, "the line holds a control character");
	else if (room < 2 || len > (size_t)room - 2)
		complain(p, p->line, "the line is longer than %d bytes", room - 2);
	else if (len > 0 && *s == '[')
		start_section(p, s, len);
	if (p->failed)
		return NULL;
	memcpy(out, s, len);
	memcpy(out + len, "\n", 2);
	return out;
}

static void
unknown_key(struct parser *p, const char *name)
{
	char section[80];

	section_text(p, section);
	for (const struct key *k = keys; k < keys + KEYS; k++) {
		if (k->section == p->section && distance(name, k->name) <= 2) {
			complain(p, p->line, "[%s] %s: unknown key (did you mean %s?)", section,
			    name, k->name);
			return;
		}
	}
	complain(p, p->line, "[%s] %.40s: unknown key", section, name);
}

static void
set_key(struct parser *p, size_t i, const char *value)
{
	const struct key *k = &keys[i];
	bool many = k->set == set_listen || k->set == set_proxy;
	char *base = (char *)p->c;
	char section[80];
	struct why why;

	if (p->section == DATA)
		base = (char *)&p->c->data[p->c->data_count - 1];
	section_text(p, section);
	if (p->seen[i] && !many) {
		complain(p, p->line, "[%s] %s: given twice", section, k->name);
		return;
	}
	if (many && !p->seen[i])
		memset(base + k->offset, 0, k->size);
	p->seen[i] = true;
	if (k->set(k, base + k->offset, value, &why))
		complain(p, p->line, "[%s] %s: %s", section, k->name, why.text);
}

static int
on_key(void *user, const char *section, const char *name, const char *value)
{
	struct parser *p = user;

	(void)section;
	if (p->failed)
		return 0;
	if (p->section == NO_SECTION) {
		complain(p, p->line, "%.40s: stands before any [section]", name);
		return 0;
	}
	for (size_t i = 0; i < KEYS; i++) {
		if (keys[i].section == p->section && strcmp(keys[i].name, name) == 0) {
			set_key(p, i, value);
			return !p->failed;
		}
	}
	unknown_key(p, name);
	return 0;
}

enum err
config_parse(struct config *c, const char *file, const char *text, size_t len, struct why *why)
{
	const char *slash = strrchr(file, '/');
	struct parser p = {.c = c, .at = text, .end = text + len, .why = why};

	/* A long path must not push the reason out of the message. */
	p.file = strlen(file) > 100 && slash ? slash + 1 : file;
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		p.at += 3;
	config_defaults(c);
	int bad_line = ini_parse_stream(next_line, &p, on_key, &p);
	if (bad_line < 0)
		return err_set(why, ERR_NOMEM, "no memory to read %s", p.file);
	/* inih goes on after a line it cannot read; the first of its and our complaints counts. */
	if (bad_line > 0 && (!p.failed || bad_line < p.failed_line)) {
		p.failed = false;
		complain(&p, bad_line, "neither a [section] nor \"key = value\" nor a comment");
	}
	finish_section(&p);
	return p.failed ? ERR_INVALID : ERR_OK;
}

enum err
config_load(struct config *c, const char *path, struct why *why)
{
	char *text;
	size_t len;
	enum err e = file_read(path, CONFIG_FILE_MAX, &text, &len, why);

	if (e)
		return e;
	e = config_parse(c, path, text, len, why);
	free(text);
	return e;
}
