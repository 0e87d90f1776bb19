#ifndef JSON_SCAN_H
#define JSON_SCAN_H
#include <stddef.h>

#include "err.h"

/*
 * What cJSON lets through is refused by a scan before it: white space that is none, control bytes and invalid
 * UTF-8 in strings, \u0000, numbers such as 01 and -.5, nesting past JSON_DEPTH_MAX (ERR_LIMIT). The scan knows
 * words only; grammar is cJSON's. Reads nothing but the len bytes and allocates nothing.
 */
ERR_MUST_USE enum err json_scan(const char *text, size_t len, struct why *why);

/* An upper bound of the values in a text (keys are none), without reading them. */
size_t json_scan_values(const char *text, size_t len);

/* Length of the well-formed UTF-8 sequence at p (RFC 3629), 0 if there is none in `left` bytes. */
size_t json_scan_utf8(const unsigned char *p, size_t left);

/* A key from outside as it may stand in a reason: cut to room - 1, all but printable ASCII as '?'. */
void json_scan_label(char *out, size_t room, const char *text);

#endif
