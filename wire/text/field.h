#ifndef FIELD_H
#define FIELD_H
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "json.h"

/*
 * Typed reading of JSON documents from outside. Within wire/ only.
 *
 * A reader keeps the first error and its path ("model.layers[2].kernel: must be ..."); after it every call does
 * nothing and gives the default, so a parser checks once at its end. A field is one place of the document. Reading a
 * key makes it known; field_end complains of the others when the reader is strict. In a reader that is not strict,
 * null means absent.
 *
 * A getter with a key reads that member of an object; with key NULL it reads the place itself.
 */
#define FIELD_KEYS_MAX 24

/* Defaults that mean "must be there". */
#define FIELD_MUST_U64 UINT64_MAX
#define FIELD_MUST_DOUBLE ((double)NAN)
#define FIELD_MUST_CHOICE (-1)

/* A key that people write because they know it from another program, and the path of the key that they mean. Of several entries with the
 * same word the one whose key is known at that place wins, else the first. */
#define FIELD_ELSEWHERE "@" /* begins `meant` if the key belongs into another file */
struct field_synonym {
	const char *written, *meant; /* NULL ends a table */
};

struct field_reader {
	bool strict;
	enum err err;
	struct why *why; /* may be NULL */
	const struct field_synonym *synonyms; /* for unknown keys; may be NULL */
};

struct field {
	struct field_reader *reader;
	const struct field *parent; /* NULL: the root; must outlive this */
	const char *key; /* NULL: item `index` of an array */
	size_t index;
	const struct json *value; /* NULL: absent */
	const char *known[FIELD_KEYS_MAX];
	size_t known_count;
};

enum field_text {
	FIELD_NAME, /* one or more of A-Z a-z 0-9 _ . - */
	FIELD_LINE, /* printable UTF-8: no control characters, none that reorder text */
	FIELD_TEXT, /* as FIELD_LINE, with newlines and tabs */
	FIELD_SHOWN, /* a line to show: cut to fit, what is not printable becomes '?' */
	FIELD_SHOWN_TEXT, /* as FIELD_SHOWN, with newlines and tabs */
};

/* Copies text as FIELD_SHOWN or FIELD_SHOWN_TEXT; never fails. */
void field_show(char *out, size_t room, const char *text, enum field_text kind);

/* The root of a document; an error unless it is an object. */
struct field field_root(struct field_reader *r, const struct json *v);
/* A member; an error unless it is absent or an object. */
struct field field_object(struct field *parent, const char *key);
/* Is the key there? Makes it known. */
bool field_has(struct field *o, const char *key);
/* In a strict reader: every key must have been read. */
void field_end(const struct field *o);
/* Sets the error, unless there is one already. key may be NULL. Returns false. */
bool field_fail(const struct field *o, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void field_no_memory(const struct field *o);

uint64_t field_u64(struct field *o, const char *key, uint64_t min, uint64_t max, uint64_t def);
int64_t field_i64(struct field *o, const char *key, int64_t min, int64_t max, int64_t def);
double field_double(struct field *o, const char *key, double min, double max, double def);
bool field_bool(struct field *o, const char *key, bool def);
/* Index into names, which ends with NULL. */
int field_choice(struct field *o, const char *key, const char *const *names, int def);
/* out has `room` bytes with the final zero; def NULL: must be there. On error out is "". */
void field_string(struct field *o, const char *key, enum field_text kind, char *out, size_t room,
    const char *def);
/* Lower-case hex of exactly room - 1 digits. */
void field_hex(struct field *o, const char *key, char *out, size_t room, const char *def);

/* The items of an array, or the members of an object with free keys. */
struct field_list {
	struct field self;
	const struct json *next;
	size_t index;
};

/* Returns the number of items, 0 if absent; an error unless it is an array of min..max items (an absent one is
 * allowed if min is 0). */
size_t field_array(struct field_list *l, struct field *o, const char *key, size_t min, size_t max);
size_t field_map(struct field_list *l, struct field *o, const char *key, size_t max);
/* Makes *item the next one; false at the end and after an error. */
bool field_each(struct field_list *l, struct field *item);
/* The key of a member that field_each gave, as text that is not empty; sets an error if it does not fit. */
void field_member(const struct field *item, enum field_text kind, char *out, size_t room);

#endif
