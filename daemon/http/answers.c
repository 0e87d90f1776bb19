#include "answers.h"

#include <ctype.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "json.h"
#include "log.h"
#include "role.h"
#include "route.h"

#define SEEN_MAX (1u << 16)
#define DEPTH_MAX 48
#define WORD_MAX 24 /* longer strings are no words */
#define TEXT_MAX ((size_t)64 << 20)

struct answers {
	int fd;
	pthread_mutex_t lock;
	size_t count;
	uint64_t seen[SEEN_MAX]; /* a hash table; 0: free */
};

void
answers_open(struct answers **out)
{
	const char *dir = getenv("RIVULET_KEEP_ANSWERS");
	char path[512];

	*out = NULL;
	if (!dir || !*dir)
		return;
	struct answers *a = calloc(1, sizeof(*a));
	if (!a)
		return;
	snprintf(path, sizeof(path), "%s/%ld.jsonl", dir, (long)getpid());
	a->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	log_event(LOG_LEVEL_WARN, "answers.kept", LOG_S("file", path),
	    LOG_S("why",
		a->fd < 0 ? "the file cannot be made: none are kept"
			  : "RIVULET_KEEP_ANSWERS, a switch for tests, is set: answers are written "
			    "down"));
	if (a->fd < 0) {
		free(a);
		return;
	}
	pthread_mutex_init(&a->lock, NULL);
	*out = a;
}

void
answers_free(struct answers *a)
{
	if (!a)
		return;
	close(a->fd);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

/* --- what was answered before */

static uint64_t
mix(uint64_t hash, const void *data, size_t len)
{
	const unsigned char *p = data;

	/* FNV-1a */
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ p[i]) * 0x100000001b3u;
	return hash;
}

/* Is the hash new? A full table knows everything. */
static bool
note(struct answers *a, uint64_t hash)
{
	size_t at = hash % SEEN_MAX;

	hash += hash == 0;
	while (a->seen[at] && a->seen[at] != hash)
		at = (at + 1) % SEEN_MAX;
	if (a->seen[at] || a->count >= SEEN_MAX / 2)
		return false;
	a->seen[at] = hash;
	a->count++;
	return true;
}

/* A place in a text of JSON: the hashes of the ways to the objects and arrays that are open, and to the member at hand. */
struct scan {
	struct answers *answers;
	const char *at, *end;
	uint64_t around[DEPTH_MAX], here[DEPTH_MAX];
	bool is_object[DEPTH_MAX], wants_key;
	size_t depth;
	bool fresh; /* something new was seen */
};

/* The string at s->at, which stands behind it then. */
static const char *
take_string(struct scan *s, size_t *len)
{
	const char *from = ++s->at;

	while (s->at < s->end && *s->at != '"')
		s->at += *s->at == '\\' && s->at + 1 < s->end ? 2 : 1;
	*len = (size_t)(s->at - from);
	s->at += s->at < s->end;
	return from;
}

static bool
is_word(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!islower((unsigned char)text[i]) && text[i] != '-')
			return false;
	return len <= WORD_MAX;
}

static void
see(struct scan *s, char kind, const char *text, size_t len)
{
	uint64_t hash = mix(s->here[s->depth], &kind, 1);

	s->fresh |= note(s->answers, mix(hash, text, len));
}

static void
scan_string(struct scan *s)
{
	size_t len;
	const char *text = take_string(s, &len);

	if (s->wants_key)
		s->here[s->depth] = mix(s->around[s->depth], text, len);
	else
		see(s, 's', text, is_word(text, len) ? len : 0);
	s->wants_key = false;
}

static void
scan_open(struct scan *s, char c)
{
	see(s, c, NULL, 0);
	s->at++;
	if (s->depth + 1 == DEPTH_MAX) {
		s->at = s->end;
		s->fresh = true;
		return;
	}
	uint64_t inside = mix(s->here[s->depth], &c, 1);
	s->depth++;
	s->around[s->depth] = s->here[s->depth] = inside;
	s->is_object[s->depth] = s->wants_key = c == '{';
}

/* null, true, false, or a number: whole or not, below zero or not. */
static void
scan_scalar(struct scan *s)
{
	char kind[2] = {*s->at, ' '};

	if (isdigit((unsigned char)kind[0]))
		kind[0] = '0';
	for (; s->at < s->end && !strchr(",]} \t\r\n", *s->at); s->at++)
		if (*s->at == '.' || *s->at == 'e')
			kind[1] = '.';
	see(s, 'v', kind, sizeof(kind));
}

/* Does the text have anything that the process has not answered before, behind what `hash` stands for? */
static bool
is_fresh(struct answers *a, uint64_t hash, const char *text, size_t len)
{
	struct scan s = {.answers = a, .at = text, .end = text + len, .here = {hash}};

	s.fresh = note(a, hash);
	while (s.at < s.end) {
		char c = *s.at;
		if (c == '"') {
			scan_string(&s);
		} else if (c == '{' || c == '[') {
			scan_open(&s, c);
		} else if (c == '}' || c == ']') {
			s.depth -= s.depth > 0;
			s.wants_key = false;
			s.at++;
		} else if (strchr(",: \t\r\n", c)) {
			s.wants_key = s.wants_key || (c == ',' && s.is_object[s.depth]);
			s.at++;
		} else {
			scan_scalar(&s);
		}
	}
	return s.fresh;
}

/* --- writing it down */

static const char *
role_of(const struct exchange *x)
{
	static const struct {
		unsigned bit;
		const char *name;
	} table[] = {{ROLE_ADMIN, "admin"}, {ROLE_SUBMITTER, "submitter"}, {ROLE_READER, "reader"},
	    {ROLE_DEVICE, "device"}, {ROLE_METRICS, "metrics"}, {ROLE_EXPIRED, "expired"},
	    {ROLE_ROTATED, "rotated"}, {ROLE_SUSPENDED, "suspended"}};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (x->who.roles & table[i].bit)
			return table[i].name;
	return "anyone";
}

static struct json *
header_names(const char *extra)
{
	struct json *list = json_array();
	char name[64];

	for (const char *line = extra; *line; line = strstr(line, "\r\n") + 2) {
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(line, ":"), line);
		json_push(list, json_new_string(name));
	}
	return list;
}

/* A line; white space between the values of a body becomes blanks, so that it is one. */
static enum err
print_line(struct buf *out, const struct exchange *x, const char *text, size_t len)
{
	struct json *v = json_object();

	json_add_string(v, "verb", http_verb_name(x->request.method));
	json_add_string(v, "path", x->request.path);
	json_add_u64(v, "status", x->response.status);
	json_add_string(v, "role", role_of(x));
	json_add_string(v, "type", x->response.type ? x->response.type : "");
	json_add(v, "headers", header_names(x->response.extra));
	enum err e = json_print(out, v, false);
	json_free(v);
	if (e)
		return e;
	out->len--;
	e = len > 0 ? buf_append(out, ",\"body\":", 8) : ERR_OK;
	size_t from = out->len;
	if (!e)
		e = buf_append(out, text, len);
	for (; !e && from < out->len; from++)
		if (out->data[from] == '\n' || out->data[from] == '\r')
			out->data[from] = ' ';
	return e ? e : buf_append(out, "}\n", 2);
}

static uint64_t
hash_of(const struct exchange *x)
{
	char text[256];

	int len = snprintf(text, sizeof(text), "%d %u %u %d %.200s", (int)x->request.method,
	    x->response.status, x->who.roles, (int)x->response.problem,
	    x->asked ? x->asked->pattern : "");
	return mix(0xcbf29ce484222325u, text, (size_t)len);
}

static void
keep(struct answers *a, const struct exchange *x, const char *text, size_t len)
{
	struct buf line;

	buf_init(&line, TEXT_MAX);
	pthread_mutex_lock(&a->lock);
	if (is_fresh(a, hash_of(x), text, len) && print_line(&line, x, text, len) == ERR_OK)
		(void)!write(a->fd, line.data, line.len);
	pthread_mutex_unlock(&a->lock);
	buf_deinit(&line);
}

void
answers_keep(struct answers *a, struct buf **list, const struct exchange *x)
{
	const struct response *r = &x->response;
	const bool bodyless = x->request.method == VERB_HEAD || r->status == 304;
	const bool is_json = r->type && strstr(r->type, "json");

	if (bodyless || !is_json || (!r->list.fill && !*list)) {
		const size_t len = bodyless || !is_json ? 0 : r->body.len;
		keep(a, x, buf_str(&r->body), len);
		return;
	}
	if (!*list) {
		*list = calloc(1, sizeof(**list));
		if (!*list)
			return;
		buf_init(*list, TEXT_MAX);
	}
	enum err e = buf_append(*list, r->body.data, r->body.len);
	/* Without one piece none of the others is taken. */
	if (e)
		(*list)->max = (*list)->len;
	if (r->list.fill)
		return;
	if (!e)
		keep(a, x, buf_str(*list), (*list)->len);
	answers_drop(list);
}

void
answers_drop(struct buf **list)
{
	if (*list)
		buf_deinit(*list);
	free(*list);
	*list = NULL;
}
