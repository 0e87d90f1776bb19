#ifndef INI_H
#define INI_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

struct buf;

/*
 * Settings from INI files by a table of sections and keys. FILE is read first, then FILE.d/[!.]*.conf in the order of their names; a
 * later file's value replaces an earlier one's, and a key that may be given many times adds up. A file has at most 1 MiB.
 *
 * A line is empty, a comment (it begins with ";" or "#"), [section], "key = value" or "key: value". Blanks around a line, a key and a value
 * are no part of them, and neither is what follows a blank and a ";". A value ends with its line.
 *
 * An unknown section or key (where it belongs is said, or the nearest known one is guessed), a key given twice in one file or a value that its setter refuses is
 * ERR_INVALID with "FILE:LINE: [section] key: what is wrong" in `why`; the first mistake is the one named. A key that was removed is
 * a warning instead. Calls block on the disk.
 */
#define INI_WARNINGS_MAX 8
#define INI_PLACE_MAX 320
#define INI_LINE_MAX 8192 /* bytes of a line, without blanks around it */

struct ini_key {
	const char *name; /* NULL ends a table of at most 64 */
	/* Puts a value into the field; `why` says what is wrong, not where. NULL: the key was removed, its value is not looked at. */
	enum err (*set)(const struct ini_key *key, void *field, const char *value, struct why *why);
	size_t offset, size; /* of the field, in what the section fills */
	uint64_t min, max; /* for set */
	/* The default, written like a value; NULL: the field stays as it is. */
	const char *fallback;
	const char *const *words; /* for set, ended by NULL */
	/* The key's new name; a value under the old name counts and is a warning. NULL: the key was not renamed. */
	const char *now;
	bool quotes; /* the value may stand in quotes: of words with blanks, say */
	/* May be given several times: the first value clears the field, then `set` is called for each. */
	bool many;
	/* Bits of the forms (ini_section.form) of a section that know the key; 0: all. */
	unsigned forms;
	unsigned needs; /* bits of the forms in which the key must be given */
};

struct ini_section {
	const char *name; /* NULL ends a table */
	const struct ini_key *keys;
	/* For sections [name NAME]: returns the cleared struct that NAME's section fills; called once for each NAME. NULL with a reason in
	 * `why`: there can be no section of this NAME. Without this function there is one section [name], which fills ini.out. */
	void *(*open)(void *out, const char *name, struct why *why);
	bool once; /* a [name NAME] stands once in a file */
	/* Which form the section has, as one bit; without this function 1. */
	unsigned (*form)(const void *fields);
	/* Checks a complete section: returns NULL, or what is wrong with *key. May be NULL. */
	const char *(*check)(void *fields, const char **key);
};

struct ini_warnings {
	struct why text[INI_WARNINGS_MAX]; /* more are dropped */
	size_t count;
};

/* Where a value stands: "FILE:LINE: [section] key: ". */
struct ini_place {
	const void *field;
	char text[INI_PLACE_MAX];
};

/* For a caller who wants every mistake and where each value stands. All members but `mistake` and `context` begin as zero. */
struct ini_notes {
	struct ini_place *places; /* of each accepted value, in the order of reading */
	size_t count;
	/* Called with each mistake; ini_load still returns the first one. NULL: reading ends with the first mistake. */
	void (*mistake)(void *context, const char *text);
	void *context;
};

/* A key or section that people write into this file although it belongs in another. */
struct ini_elsewhere {
	const char *name; /* a key, or "[name]" of a section; NULL ends a table */
	const char *where; /* it belongs */
};

struct ini {
	const struct ini_section *sections;
	const struct ini_elsewhere *elsewhere; /* may be NULL */
	void *out;
	struct ini_notes *notes; /* may be NULL */
	bool optional; /* FILE may be absent; FILE.d always may */
	bool dotted; /* places are written section.key, not [section] key */
	struct ini_warnings *warnings; /* started anew */
};

/* Sets the defaults, then reads FILE and FILE.d over them. After an error what ini->out points to is undefined. */
ERR_MUST_USE enum err ini_load(const struct ini *ini, const char *file, struct why *why);
/* ini_load of a text in memory, without FILE.d; `file` is the name for messages. */
ERR_MUST_USE enum err ini_read(
    const struct ini *ini, const char *file, const char *text, size_t len, struct why *why);
/* A setter: one of key->words becomes its number, in a bool or an enum of that size. */
ERR_MUST_USE enum err ini_choice(
    const struct ini_key *key, void *field, const char *value, struct why *why);
/* Texts of 1 to size - 1 bytes; whole numbers from min to max, where key->words may have one word that stands for 0, and sizes, both into a
 * uint64_t or a uint32_t. */
ERR_MUST_USE enum err ini_text(
    const struct ini_key *key, void *field, const char *value, struct why *why);
ERR_MUST_USE enum err ini_number(
    const struct ini_key *key, void *field, const char *value, struct why *why);
ERR_MUST_USE enum err ini_bytes(
    const struct ini_key *key, void *field, const char *value, struct why *why);
/* The place of the value in `field`, or of one of several that a key was given; "" if it is the default. */
#define INI_LAST SIZE_MAX
const char *ini_notes_place(const struct ini_notes *notes, const void *field, size_t which);
void ini_notes_deinit(struct ini_notes *notes);
/* Puts a line (option.h) for each key that may be written. */
ERR_MUST_USE enum err ini_list(struct buf *out, const struct ini_section *sections);

#endif
