#include "line.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TEXT_TAIL " ...\n"
#define JSON_TAIL ",\"cut\":true}\n"

const char *const line_formats[] = {[LINE_TEXT] = "text", [LINE_JSON] = "json", NULL};

static const struct {
	const char *name;
	int priority; /* as syslog has them */
} levels[] = {
    [LINE_ERROR] = {"error", 3},
    [LINE_WARN] = {"warn", 4},
    [LINE_INFO] = {"info", 6},
    [LINE_DEBUG] = {"debug", 7},
};

/* What was printed so far, and whether something had no room since this was last asked. */
struct print {
	char *out;
	size_t room, len;
	bool full;
};

static void __attribute__((format(printf, 2, 3))) add(struct print *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(p->out + p->len, p->room - p->len, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= p->room - p->len)
		p->full = true;
	else
		p->len += (size_t)n;
}

/* Everything beyond printable ASCII is escaped: C1 control characters hide inside UTF-8 too. */
static void
add_quoted(struct print *p, const char *s, bool json)
{
	add(p, "\"");
	for (; *s && !p->full; s++) {
		if (*s == '"' || *s == '\\')
			add(p, "\\%c", *s);
		else if (*s >= ' ' && *s <= '~')
			add(p, "%c", *s);
		else
			add(p, json ? "\\u%04x" : "\\x%02x", (unsigned)(unsigned char)*s);
	}
	add(p, "\"");
}

static int
known_level(int level)
{
	return level >= LINE_ERROR && level <= LINE_DEBUG ? level : LINE_INFO;
}

const char *
line_level_name(int level)
{
	return levels[known_level(level)].name;
}

static void
add_time(struct print *p, double wall)
{
	time_t whole = (time_t)floor(wall);
	char date[32];
	struct tm tm;

	gmtime_r(&whole, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	add(p, "%s.%03dZ", date, (int)((wall - (double)whole) * 1000));
}

/* --- text */

static bool
is_plain(const char *s)
{
	return *s &&
	    s[strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:/+-")] ==
	    '\0';
}

static void
text_head(struct print *p, const struct line *l)
{
	if (l->journal) {
		add(p, "<%d>", levels[known_level(l->level)].priority);
	} else {
		add_time(p, l->wall);
		add(p, " ");
	}
	add(p, "%s ", line_level_name(l->level));
}

static void
text_pair(struct print *p, const struct line_pair *pair)
{
	const char *s = pair->s ? pair->s : "";

	add(p, " %s=", pair->key);
	if (pair->kind == LINE_UNSIGNED)
		add(p, "%llu", pair->u);
	else if (pair->kind == LINE_DOUBLE)
		add(p, "%.6g", pair->d);
	else if (is_plain(s))
		add(p, "%s", s);
	else
		add_quoted(p, s, false);
}

size_t
line_head(char *out, size_t room, const struct line *l)
{
	struct print p = {.out = out, .room = room};

	text_head(&p, l);
	return p.len;
}

/* --- JSON */

static void
json_head(struct print *p, const struct line *l)
{
	if (l->journal)
		add(p, "<%d>", levels[known_level(l->level)].priority);
	add(p, "{\"time\":\"");
	add_time(p, l->wall);
	add(p, "\",\"level\":\"%s\",\"event\":", line_level_name(l->level));
}

static void
json_pair(struct print *p, const struct line_pair *pair)
{
	add(p, ",");
	add_quoted(p, pair->key, true);
	add(p, ":");
	if (pair->kind == LINE_UNSIGNED)
		add(p, "%llu", pair->u);
	else if (pair->kind == LINE_DOUBLE && isfinite(pair->d))
		add(p, "%.6g", pair->d);
	else if (pair->kind == LINE_DOUBLE)
		add(p, "null");
	else
		add_quoted(p, pair->s ? pair->s : "", true);
}

/* Has the line this key from another pair before it, or from its head or end? */
static bool
is_taken(const struct line_pair *pairs, const struct line_pair *pair)
{
	static const char *const own[] = {"time", "level", "event", "cut"};

	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (strcmp(own[i], pair->key) == 0)
			return true;
	for (; pairs < pair; pairs++)
		if (strcmp(pairs->key, pair->key) == 0)
			return true;
	return false;
}

/* --- both */

/* Adds all that fits. True: something was left out. */
static bool
add_pairs(struct print *p, const struct line_pair *pairs,
    void (*print_pair)(struct print *p, const struct line_pair *pair))
{
	bool cut = p->full;

	for (const struct line_pair *pair = pairs; pair->key; pair++) {
		size_t before = p->len;
		p->full = is_taken(pairs, pair);
		if (!p->full)
			print_pair(p, pair);
		cut |= p->full;
		if (p->full)
			p->len = before;
	}
	return cut;
}

size_t
line_print(char *out, size_t room, enum line_format format, const struct line *l)
{
	const bool json = format == LINE_JSON;
	const char *whole = json ? "}\n" : "\n", *less = json ? JSON_TAIL : TEXT_TAIL;
	/* A zero follows what add prints; the end may take its place. */
	struct print p = {.out = out, .room = room + 1 - strlen(less)};

	(json ? json_head : text_head)(&p, l);
	size_t before = p.len;
	if (json)
		add_quoted(&p, l->event, true);
	else
		add(&p, "%s", l->event);
	if (p.full)
		p.len = before;
	if (p.full && json)
		p.len += (size_t)snprintf(out + p.len, 3, "\"\"");
	const char *end = add_pairs(&p, l->pairs, json ? json_pair : text_pair) ? less : whole;
	while (*end)
		out[p.len++] = *end++;
	return p.len;
}

bool
line_in_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	uintmax_t dev, ino;
	struct stat st;

	return stream && sscanf(stream, "%" SCNuMAX ":%" SCNuMAX, &dev, &ino) == 2 &&
	    fstat(STDERR_FILENO, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}
