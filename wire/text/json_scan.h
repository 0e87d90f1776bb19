#ifndef JSON_SCAN_H
#define JSON_SCAN_H
#include <stddef.h>

#include "err.h"

/*
 * The words of a JSON text (RFC 8259): strings and numbers whole, brackets, and all other characters one by one. Control bytes, invalid UTF-8
 * and \u0000 in strings, malformed numbers, nesting past JSON_DEPTH_MAX (ERR_LIMIT) and characters that no JSON has are refused; grammar is the
 * parser's. Reads nothing behind `end` and allocates nothing.
 */
#define JSON_SCAN_NUMBER_MAX 62 /* bytes of a number */

struct json_scan {
	const unsigned char *at, *end;
	unsigned depth;
	const char *why; /* what is wrong at `at`; NULL while all is well */
	enum err err;
};

/* Steps over one word; there must be one. */
void json_scan_word(struct json_scan *s);

/* An upper bound of the values in a text (keys are none), without reading them. */
size_t json_scan_values(const char *text, size_t len);

/* Length of the well-formed UTF-8 sequence at p (RFC 3629), 0 if there is none in `left` bytes. */
size_t json_scan_utf8(const unsigned char *p, size_t left);

/* A key from outside as it may stand in a reason: cut to room - 1, all but printable ASCII as '?'. */
void json_scan_label(char *out, size_t room, const char *text);

#endif
