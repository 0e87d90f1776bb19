#ifndef SHOWN_H
#define SHOWN_H
#include <stdbool.h>
#include <stddef.h>

/*
 * Text that others wrote, where people read it: a control character (C0, DEL, C1), a line separator or a mark that reorders text
 * would steer a terminal or forge a line. One rule for names that are taken, and for what is printed all the same.
 */

/* Length of the character at p (RFC 3629) and its code point; 0 if it is malformed. */
size_t shown_decode(const char *p, size_t left, unsigned *code);
/* Length of the character at p, 0 if it is malformed or none to be shown. */
size_t shown_char(const char *p, size_t left);
/* Are all of them to be shown? */
bool shown_is(const char *text);
/* Makes each byte of those that are not '?'. */
void shown_clean(char *text);

#endif
