#ifndef BASE64_H
#define BASE64_H
#include <stddef.h>

#include "err.h"

/* RFC 4648 base64 with the standard alphabet and padding. */

/* Characters needed for len bytes, without the final zero. */
#define BASE64_LEN(len) (((len) + 2) / 3 * 4)

/* Writes BASE64_LEN(len) characters and a zero byte to out. */
void base64_encode(char *out, const void *data, size_t len);
/* Decodes strictly (canonical padding, no white space). *len enters as the room of out and leaves as the
 * bytes written. ERR_INVALID for anything else than base64, ERR_LIMIT if out is too small. */
ERR_MUST_USE enum err base64_decode(void *out, size_t *len, const char *text, size_t text_len);

#endif
