#ifndef SHOWN_H
#define SHOWN_H
#include <stdbool.h>
#include <stddef.h>

/*
 * Text from outside that people read: a control character (C0, DEL, C1), a line separator or a mark that reorders text
 * would steer a terminal or forge a line. One rule both for refusing names and for cleaning what is printed.
 */

/* Length of the character at p (RFC 3629) and its code point; 0 if it is malformed. */
size_t shown_decode(const char *p, size_t left, unsigned *code);
/* Length of the character at p, 0 if the character is malformed or must not be shown. */
size_t shown_char(const char *p, size_t left);
/* May every character of the text be shown? */
bool shown_is(const char *text);
/* Replaces each byte of characters that must not be shown by '?'. */
void shown_clean(char *text);

#endif
