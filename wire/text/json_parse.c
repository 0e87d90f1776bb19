#include <cjson/cJSON.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "json_scan.h"
#include "num.h"
#include "text_file.h"

/* One pass over a text makes cJSON's tree of it. */
struct parser {
	struct json_scan scan;
	const unsigned char *bad; /* where grammar failed first; NULL: nowhere */
	bool no_memory;
	bool doubtful; /* some object has a key twice, or some number is too large */
	locale_t c; /* made for the first number that needs it */
};

static bool
stops(const struct parser *p)
{
	return p->bad || p->no_memory || p->scan.why;
}

static void
fail(struct parser *p, const unsigned char *at)
{
	if (!p->bad && !p->scan.why)
		p->bad = at < p->scan.end ? at : p->scan.end;
}

static unsigned char
peek(const struct parser *p)
{
	return p->scan.at < p->scan.end ? *p->scan.at : 0;
}

/* What is wrong stays where it is. */
static void
skip_blanks(struct parser *p)
{
	unsigned char c;

	if (stops(p))
		return;
	while ((c = peek(p)) == ' ' || c == '\t' || c == '\r' || c == '\n')
		p->scan.at++;
}

/* --- strings */

/* The number of four hex digits, which the scan has seen. */
static unsigned
hex4(const unsigned char *s)
{
	unsigned v = 0;

	for (int i = 0; i < 4; i++)
		v = v << 4 | (s[i] <= '9' ? s[i] & 0xfu : (s[i] & 0xfu) + 9);
	return v;
}

static char *
put_utf8(char *to, unsigned c)
{
	static const unsigned char marks[] = {0, 0xc0, 0xe0, 0xf0};
	unsigned more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;

	for (unsigned i = more; i > 0; i--, c >>= 6)
		to[i] = (char)(0x80 | (c & 0x3f));
	to[0] = (char)(marks[more] | c);
	return to + more + 1;
}

/* One escape at *s. NULL: there is none such, or half a pair. */
static char *
put_escape(char *to, const unsigned char **s, const unsigned char *end)
{
	static const char from[] = "\"\\/bfnrt", plain[] = "\"\\/\b\f\n\r\t";
	const unsigned char *at = *s;
	const char *known = strchr(from, at[1]);

	if (known) {
		*s += 2;
		*to = plain[known - from];
		return to + 1;
	}
	if (at[1] != 'u')
		return NULL;
	unsigned c = hex4(at + 2), low = 0;
	*s += 6;
	if (c >= 0xdc00 && c < 0xe000)
		return NULL;
	if (c >= 0xd800 && c < 0xdc00) {
		if (end - at < 12 || at[6] != '\\' || at[7] != 'u')
			return NULL;
		low = hex4(at + 8);
		if (low < 0xdc00 || low > 0xdfff)
			return NULL;
		c = 0x10000 + ((c & 0x3ff) << 10 | (low & 0x3ff));
		*s += 6;
	}
	return put_utf8(to, c);
}

/* Copies what stands between the quotes. */
static char *
decode(struct parser *p, char *out, const unsigned char *s, const unsigned char *end)
{
	char *to = out;

	while (s < end) {
		const unsigned char *escape = memchr(s, '\\', (size_t)(end - s));
		size_t n = (size_t)((escape ? escape : end) - s);
		memcpy(to, s, n);
		to += n;
		s += n;
		if (!escape)
			break;
		char *next = put_escape(to, &s, end);
		if (!next) {
			fail(p, escape);
			break;
		}
		to = next;
	}
	*to = '\0';
	return out;
}

static char *
read_string(struct parser *p)
{
	if (peek(p) != '"') {
		fail(p, p->scan.at < p->scan.end ? p->scan.at + 1 : p->scan.end);
		return NULL;
	}
	const unsigned char *start = p->scan.at + 1;
	json_scan_word(&p->scan);
	if (p->scan.why)
		return NULL;
	const unsigned char *end = p->scan.at - 1;
	char *out = cJSON_malloc((size_t)(end - start) + 1);
	p->no_memory |= !out;
	return out ? decode(p, out, start, end) : NULL;
}

/* --- numbers */

static double
slow_number(struct parser *p, const unsigned char *s, size_t len)
{
	char text[JSON_SCAN_NUMBER_MAX + 1];

	/* The decimal point of the thread's locale belongs to the program around us. */
	if (!p->c)
		p->c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	p->no_memory |= !p->c;
	if (!p->c)
		return 0;
	memcpy(text, s, len);
	text[len] = '\0';
	return strtod_l(text, NULL, p->c);
}

static void
read_number(struct parser *p, cJSON *v)
{
	const unsigned char *start = p->scan.at;
	double d = 0;

	json_scan_word(&p->scan);
	if (p->scan.why)
		return;
	size_t len = (size_t)(p->scan.at - start);
	if (!num_short((const char *)start, len, &d))
		d = slow_number(p, start, len);
	p->doubtful |= !isfinite(d);
	v->type = cJSON_Number;
	v->valuedouble = d;
}

/* --- lists and objects */

static int
compare_keys(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The first of the object's keys, as strcmp has them, that it has twice; NULL: none, or no memory. */
static const char *
key_twice(struct parser *p, const cJSON *object)
{
	const char *few[32], **keys = few, *found = NULL;
	size_t n = 0;

	for (const cJSON *c = object->child; c; c = c->next)
		n++;
	if (n > sizeof(few) / sizeof(*few))
		keys = calloc(n, sizeof(*keys));
	p->no_memory |= !keys;
	if (!keys)
		return NULL;
	n = 0;
	for (const cJSON *c = object->child; c; c = c->next)
		keys[n++] = c->string;
	qsort(keys, n, sizeof(*keys), compare_keys);
	for (size_t i = 1; i < n && !found; i++)
		if (strcmp(keys[i - 1], keys[i]) == 0)
			found = keys[i];
	if (keys != few)
		free(keys);
	return found;
}

/* As cJSON links them: the first knows the last. */
static cJSON *
append(struct parser *p, cJSON *list)
{
	cJSON *v = cJSON_CreateNull(), *first = list->child;

	p->no_memory |= !v;
	if (v && first) {
		v->prev = first->prev;
		first->prev->next = v;
		first->prev = v;
	} else if (v) {
		list->child = v->prev = v;
	}
	return v;
}

static void read_value(struct parser *p, cJSON *v);

static void
read_member(struct parser *p, cJSON *v)
{
	v->string = read_string(p);
	if (stops(p))
		return;
	skip_blanks(p);
	if (peek(p) != ':')
		fail(p, p->scan.at);
	else
		p->scan.at++;
}

static void
read_list(struct parser *p, cJSON *list, unsigned char close)
{
	json_scan_word(&p->scan);
	skip_blanks(p);
	if (peek(p) == close && !stops(p)) {
		json_scan_word(&p->scan);
		return;
	}
	while (!stops(p)) {
		cJSON *v = append(p, list);
		skip_blanks(p);
		if (v && close == '}')
			read_member(p, v);
		skip_blanks(p);
		if (!stops(p))
			read_value(p, v);
		skip_blanks(p);
		if (stops(p))
			return;
		unsigned char next = peek(p);
		if (next != ',' && next != close) {
			fail(p, p->scan.at);
			return;
		}
		json_scan_word(&p->scan);
		if (next == close)
			break;
	}
	if (close == '}' && key_twice(p, list))
		p->doubtful = true;
}

static bool
read_literal(struct parser *p, cJSON *v)
{
	static const struct {
		const char *text;
		int type;
	} words[] = {{"null", cJSON_NULL}, {"true", cJSON_True}, {"false", cJSON_False}};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		size_t n = strlen(words[i].text);
		if ((size_t)(p->scan.end - p->scan.at) >= n &&
		    memcmp(p->scan.at, words[i].text, n) == 0) {
			v->type = words[i].type;
			p->scan.at += n;
			return true;
		}
	}
	return false;
}

/* Recursion is bounded by JSON_DEPTH_MAX. */
static void
read_value(struct parser *p, cJSON *v)
{
	unsigned char c = peek(p);

	if (c == '"') {
		v->type = cJSON_String;
		v->valuestring = read_string(p);
	} else if (c == '-' || (c >= '0' && c <= '9')) {
		read_number(p, v);
	} else if (c == '[' || c == '{') {
		v->type = c == '[' ? cJSON_Array : cJSON_Object;
		read_list(p, v, c == '[' ? ']' : '}');
	} else if (!read_literal(p, v)) {
		fail(p, p->scan.at);
	}
}

/* --- what is wrong */

/* Names the first of what makes a tree doubtful. */
static enum err
check_tree(struct parser *p, const cJSON *v, struct why *why)
{
	const char *twice = cJSON_IsObject(v) ? key_twice(p, v) : NULL;
	enum err e = ERR_OK;
	char label[64];

	if (twice) {
		json_scan_label(label, sizeof(label), twice);
		return err_set(why, ERR_INVALID, "JSON key \"%s\" used twice", label);
	}
	if (cJSON_IsNumber(v) && !isfinite(v->valuedouble))
		return err_set(why, ERR_INVALID, "JSON number out of range");
	for (const cJSON *c = v->child; c && !e; c = c->next)
		e = check_tree(p, c, why);
	return e;
}

/* A word that no JSON has, wherever it stands, is said before what words may not follow one another. */
static enum err
judge(struct parser *p, const cJSON *root, const unsigned char *start, struct why *why)
{
	while (!p->scan.why && p->bad && p->scan.at < p->scan.end)
		json_scan_word(&p->scan);
	if (p->scan.why)
		return err_set(why, p->scan.err, "not JSON at byte %zu: %s",
		    (size_t)(p->scan.at - start), p->scan.why);
	if (p->no_memory)
		return err_set(why, ERR_NOMEM, "out of memory");
	if (p->bad)
		return err_set(why, ERR_INVALID, "not JSON at byte %zu", (size_t)(p->bad - start));
	enum err e = p->doubtful ? check_tree(p, root, why) : ERR_OK;
	/* Without memory a key that stands twice is not found again. */
	return !e && p->no_memory ? err_set(why, ERR_NOMEM, "out of memory") : e;
}

enum err
json_parse(struct json **out, const char *text, size_t len, struct why *why)
{
	const unsigned char *start = (const unsigned char *)text;
	struct parser p = {.scan = {.at = start, .end = start + len}};
	struct why other;

	*out = NULL;
	if (len == 0)
		return err_set(why, ERR_INVALID, "not JSON: empty");
	if (text_file_mark(text, len))
		return err_set(why, ERR_INVALID, "not JSON at byte 0: a byte order mark");
	if (text_file_check(text, len, &other))
		return err_set(why, ERR_INVALID, "not JSON: %s", other.text);
	cJSON *root = cJSON_CreateNull();
	p.no_memory = !root;
	skip_blanks(&p);
	if (root)
		read_value(&p, root);
	skip_blanks(&p);
	if (!stops(&p) && p.scan.at < p.scan.end)
		fail(&p, p.scan.at);
	enum err e = judge(&p, root, start, why);
	if (p.c)
		freelocale(p.c);
	if (e)
		cJSON_Delete(root);
	else
		*out = (struct json *)root;
	return e;
}
