#ifndef JSON_H
#define JSON_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

struct buf;

/*
 * JSON values. A tree has one owner, who frees its root; getters return
 * pointers that live as long as the tree. Integers are exact up to JSON_INT_MAX (RFC 7493: one
 * more, and a larger number in the text could round down to it). A tree takes up to 60 bytes per byte of text.
 */
#define JSON_DEPTH_MAX 32
#define JSON_INT_MAX (((uint64_t)1 << 53) - 1)

enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json;

/* Parses exactly len bytes. ERR_INVALID for bad syntax, a NUL byte, invalid UTF-8, a key used twice in an object, a
 * number that overflows a double, anything after the value; ERR_LIMIT when deeper than JSON_DEPTH_MAX. The caller
 * limits len before. */
ERR_MUST_USE enum err json_parse(struct json **out, const char *text, size_t len, struct why *why);
void json_free(struct json *v);
struct json *json_copy(const struct json *v); /* NULL if memory is short */

/* Reading. A NULL value is absent: every getter returns false, zero or NULL for it. json_get, json_count and json_at
 * walk the members: go over long lists with json_first and json_next. */
enum json_kind json_kind(const struct json *v);
const struct json *json_get(const struct json *object, const char *key);
const struct json *json_first(const struct json *array_or_object);
const struct json *json_next(const struct json *child); /* NULL after the last */
size_t json_count(const struct json *array_or_object);
const struct json *json_at(const struct json *array_or_object, size_t i);
size_t json_depth(const struct json *v); /* 0 for a scalar, 1 for [] */
const char *json_key(const struct json *member); /* of a value inside an object */
const char *json_string(const struct json *v); /* NULL if not a string */
bool json_u64(const struct json *v, uint64_t *out); /* whole number, 0..JSON_INT_MAX */
bool json_double(const struct json *v, double *out);
bool json_bool(const struct json *v, bool *out);

/* Building. A constructor or adder that runs out of memory makes the tree it returns or changes "bad", which
 * json_print then reports; so builders need no check per line. Adders take ownership of `child` (NULL = bad). */
struct json *json_object(void);
struct json *json_array(void);
struct json *json_new_string(const char *text);
struct json *json_new_double(double v);
struct json *json_new_u64(uint64_t v); /* above JSON_INT_MAX: the nearest double */
struct json *json_new_printed(const char *
	text); /* text: JSON as json_print makes it; the value is printed as it stands, and has no kind */
void json_add(struct json *object, const char *key, struct json *child);
void json_add_string(struct json *object, const char *key, const char *text);
void json_add_u64(struct json *object, const char *key, uint64_t v);
void json_add_double(
    struct json *object, const char *key, double v); /* NaN and infinity become null */
/* Adds a time or a duration in seconds, rounded to the microsecond. */
void json_add_seconds(struct json *object, const char *key, double v);
void json_add_bool(struct json *object, const char *key, bool v);
void json_add_null(struct json *object, const char *key);
void json_push(struct json *array, struct json *child);

/* Appends the text to out, which stays as it was on failure. Numbers in the shortest form that reads back to the same
 * double; bytes of a string that are not UTF-8 as U+FFFD. ERR_NOMEM for a bad tree or NULL, ERR_LIMIT past out->max or
 * when nested deeper than twice JSON_DEPTH_MAX. */
ERR_MUST_USE enum err json_print(struct buf *out, const struct json *v, bool pretty);

#endif
