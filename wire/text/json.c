#include "json.h"
#include "buf.h"
#include "json_scan.h"

#include <cjson/cJSON.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Kept in a node's type beside cJSON's own bits, which end at 1 << 9. */
#define BAD (1 << 16)
#define KIND_MASK 0xff
#define PRINT_DEPTH_MAX (2 * JSON_DEPTH_MAX)

/* printf takes the decimal point from the thread's locale, which belongs to the program around us. */
static locale_t
enter_c_locale(locale_t *own)
{
	*own = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	return *own ? uselocale(*own) : (locale_t)0;
}

static void
leave_c_locale(locale_t own, locale_t before)
{
	if (!own)
		return;
	uselocale(before);
	freelocale(own);
}

void
json_free(struct json *v)
{
	cJSON_Delete((cJSON *)v);
}

struct json *
json_copy(const struct json *v)
{
	return (struct json *)cJSON_Duplicate((const cJSON *)v, 1);
}

enum json_kind
json_kind(const struct json *v)
{
	const cJSON *item = (const cJSON *)v;

	switch (item ? item->type & KIND_MASK : cJSON_NULL) {
	case cJSON_True:
	case cJSON_False:
		return JSON_BOOL;
	case cJSON_Number:
		return JSON_NUMBER;
	case cJSON_String:
		return JSON_STRING;
	case cJSON_Array:
		return JSON_ARRAY;
	case cJSON_Object:
		return JSON_OBJECT;
	default:
		return JSON_NULL;
	}
}

const struct json *
json_get(const struct json *object, const char *key)
{
	if (json_kind(object) != JSON_OBJECT)
		return NULL;
	return (const struct json *)cJSON_GetObjectItemCaseSensitive((const cJSON *)object, key);
}

const struct json *
json_first(const struct json *v)
{
	return v ? (const struct json *)((const cJSON *)v)->child : NULL;
}

const struct json *
json_next(const struct json *child)
{
	return child ? (const struct json *)((const cJSON *)child)->next : NULL;
}

size_t
json_count(const struct json *v)
{
	size_t n = 0;

	for (const struct json *c = json_first(v); c; c = json_next(c))
		n++;
	return n;
}

const struct json *
json_at(const struct json *v, size_t i)
{
	const struct json *c = json_first(v);

	while (c && i-- > 0)
		c = json_next(c);
	return c;
}

size_t
json_depth(const struct json *v)
{
	size_t deepest = 0;

	if (json_kind(v) != JSON_ARRAY && json_kind(v) != JSON_OBJECT)
		return 0;
	for (const struct json *c = json_first(v); c; c = json_next(c)) {
		size_t depth = json_depth(c);
		if (depth > deepest)
			deepest = depth;
	}
	return deepest + 1;
}

const char *
json_key(const struct json *member)
{
	return member ? ((const cJSON *)member)->string : NULL;
}

const char *
json_string(const struct json *v)
{
	return json_kind(v) == JSON_STRING ? ((const cJSON *)v)->valuestring : NULL;
}

bool
json_double(const struct json *v, double *out)
{
	if (!v || json_kind(v) != JSON_NUMBER)
		return false;
	*out = ((const cJSON *)v)->valuedouble;
	return true;
}

bool
json_u64(const struct json *v, uint64_t *out)
{
	double d;

	if (!json_double(v, &d) || !(d >= 0 && d <= (double)JSON_INT_MAX) || d != floor(d))
		return false;
	*out = (uint64_t)d;
	return true;
}

bool
json_bool(const struct json *v, bool *out)
{
	if (!v || json_kind(v) != JSON_BOOL)
		return false;
	*out = cJSON_IsTrue((const cJSON *)v);
	return true;
}

struct json *
json_object(void)
{
	return (struct json *)cJSON_CreateObject();
}

struct json *
json_array(void)
{
	return (struct json *)cJSON_CreateArray();
}

struct json *
json_new_string(const char *text)
{
	return (struct json *)cJSON_CreateString(text);
}

struct json *
json_new_double(double v)
{
	return (struct json *)(isfinite(v) ? cJSON_CreateNumber(v) : cJSON_CreateNull());
}

struct json *
json_new_u64(uint64_t v)
{
	return json_new_double((double)v);
}

struct json *
json_new_printed(const char *text)
{
	return (struct json *)cJSON_CreateRaw(text);
}

void
json_add(struct json *object, const char *key, struct json *child)
{
	cJSON *to = (cJSON *)object, *item = (cJSON *)child;

	if (json_kind(object) == JSON_OBJECT && item && cJSON_AddItemToObject(to, key, item))
		return;
	cJSON_Delete(item);
	if (to)
		to->type |= BAD;
}

void
json_add_string(struct json *object, const char *key, const char *text)
{
	json_add(object, key, json_new_string(text));
}

void
json_add_u64(struct json *object, const char *key, uint64_t v)
{
	json_add(object, key, json_new_u64(v));
}

void
json_add_double(struct json *object, const char *key, double v)
{
	json_add(object, key, json_new_double(v));
}

void
json_add_seconds(struct json *object, const char *key, double v)
{
	json_add_double(object, key, round(v * 1e6) / 1e6);
}

void
json_add_bool(struct json *object, const char *key, bool v)
{
	json_add(object, key, (struct json *)cJSON_CreateBool(v));
}

void
json_add_null(struct json *object, const char *key)
{
	json_add(object, key, (struct json *)cJSON_CreateNull());
}

void
json_push(struct json *array, struct json *child)
{
	cJSON *to = (cJSON *)array, *item = (cJSON *)child;

	if (json_kind(array) == JSON_ARRAY && item && cJSON_AddItemToArray(to, item))
		return;
	cJSON_Delete(item);
	if (to)
		to->type |= BAD;
}

/* Printing is our own: cJSON prints 15 or 17 digits, never the fewest. */
struct print {
	struct buf *out;
	bool pretty;
	enum err err;
};

static void
put(struct print *p, const char *text, size_t len)
{
	if (!p->err)
		p->err = buf_append(p->out, text, len);
}

static void
put_text(struct print *p, const char *text)
{
	put(p, text, strlen(text));
}

/* Most numbers are whole, and printf takes ten times as long. */
static void
put_whole(struct print *p, double v)
{
	char text[24], *at = text + sizeof(text);
	uint64_t left = (uint64_t)fabs(v);

	do
		*--at = (char)('0' + left % 10);
	while ((left /= 10) > 0);
	if (signbit(v))
		*--at = '-';
	put(p, at, (size_t)(text + sizeof(text) - at));
}

/* Of millionths, as times are; its digits are those that printf finds. False: it is finer, or too large or small. */
static bool
put_millionths(struct print *p, double v)
{
	double all = round(v * 1e6);
	char text[8] = ".";
	size_t len = 1;

	if (fabs(v) < 1 || fabs(v) >= 0x1p32 || all / 1e6 != v)
		return false;
	uint64_t part = (uint64_t)fabs(all) % 1000000;
	put_whole(p, trunc(v));
	for (uint64_t unit = 100000; part > 0; part %= unit, unit /= 10)
		text[len++] = (char)('0' + part / unit);
	put(p, text, len);
	return true;
}

static void
put_number(struct print *p, double v)
{
	/* 15 digits always survive a double of full precision, so fewer are these without their zeros. */
	char text[40];
	int precision = fabs(v) < 2.3e-308 ? 1 : 15;

	if (!isfinite(v)) {
		put_text(p, "null");
		return;
	}
	if (v == floor(v) && fabs(v) <= (double)JSON_INT_MAX) {
		put_whole(p, v);
		return;
	}
	if (put_millionths(p, v))
		return;
	do
		snprintf(text, sizeof(text), "%.*g", precision, v);
	while (strtod(text, NULL) != v && precision++ < 17);
	put_text(p, text);
}

static void
put_escape(struct print *p, unsigned char c)
{
	static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
	const char *known = strchr(from, c);
	char text[8];

	if (known)
		snprintf(text, sizeof(text), "\\%c", to[known - from]);
	else
		snprintf(text, sizeof(text), "\\u%04x", (unsigned)c);
	put_text(p, text);
}

/* How many bytes at s stand in a text as they are, each a character of its own. */
static size_t
plain_run(const unsigned char *s)
{
	size_t n = 0;

	while (s[n] >= 0x20 && s[n] < 0x80 && s[n] != '"' && s[n] != '\\')
		n++;
	return n;
}

/* One character that is not plain; returns its bytes. */
static size_t
put_character(struct print *p, const unsigned char *s, size_t left)
{
	size_t n = json_scan_utf8(s, left);

	if (n == 0)
		put_text(p, "\xef\xbf\xbd");
	else if (*s < 0x80)
		put_escape(p, *s);
	else
		put(p, (const char *)s, n);
	return n ? n : 1;
}

static void
put_quoted(struct print *p, const char *text, size_t len)
{
	void *at = NULL;

	if (!p->err)
		p->err = buf_extend(p->out, len + 2, &at);
	if (p->err)
		return;
	char *to = at;
	to[0] = to[len + 1] = '"';
	memcpy(to + 1, text, len);
}

static void
put_string(struct print *p, const char *text)
{
	const unsigned char *s = (const unsigned char *)text, *end = s + strlen(text);
	size_t plain = plain_run(s);

	/* Nearly all of them. */
	if (s + plain == end) {
		put_quoted(p, text, plain);
		return;
	}
	put(p, "\"", 1);
	while (s < end && !p->err) {
		size_t n = plain_run(s);
		if (n > 0)
			put(p, (const char *)s, n);
		else
			n = put_character(p, s, (size_t)(end - s));
		s += n;
	}
	put(p, "\"", 1);
}

static void
put_break(struct print *p, unsigned depth)
{
	if (!p->pretty)
		return;
	put(p, "\n", 1);
	while (depth-- > 0)
		put(p, "  ", 2);
}

static void put_value(struct print *p, const cJSON *v, unsigned depth);

static void
put_members(struct print *p, const cJSON *v, unsigned depth)
{
	bool object = cJSON_IsObject(v);

	if (depth > PRINT_DEPTH_MAX)
		p->err = ERR_LIMIT;
	put(p, object ? "{" : "[", 1);
	for (const cJSON *c = v->child; c && !p->err; c = c->next) {
		if (c != v->child)
			put(p, ",", 1);
		put_break(p, depth);
		if (object) {
			put_string(p, c->string);
			put_text(p, p->pretty ? ": " : ":");
		}
		put_value(p, c, depth + 1);
	}
	if (v->child)
		put_break(p, depth - 1);
	put(p, object ? "}" : "]", 1);
}

static void
put_value(struct print *p, const cJSON *v, unsigned depth)
{
	if (v->type & BAD)
		p->err = ERR_NOMEM;
	switch (v->type & KIND_MASK) {
	case cJSON_True:
		put_text(p, "true");
		break;
	case cJSON_False:
		put_text(p, "false");
		break;
	case cJSON_Number:
		put_number(p, v->valuedouble);
		break;
	case cJSON_String:
		put_string(p, v->valuestring);
		break;
	case cJSON_Raw:
		put_text(p, v->valuestring);
		break;
	case cJSON_Array:
	case cJSON_Object:
		put_members(p, v, depth);
		break;
	default:
		put_text(p, "null");
	}
}

enum err
json_print(struct buf *out, const struct json *v, bool pretty)
{
	struct print p = {.out = out, .pretty = pretty};
	size_t start = out->len;
	locale_t own, before;

	if (!v)
		return ERR_NOMEM;
	before = enter_c_locale(&own);
	put_value(&p, (const cJSON *)v, 1);
	leave_c_locale(own, before);
	if (p.err) {
		out->len = start;
		if (out->data)
			out->data[start] = '\0';
	}
	return p.err;
}
