#ifndef HEX_H
#define HEX_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Lower-case hexadecimal. */

/* Writes 2*len digits and a zero byte to out. */
void hex_encode(char *out, const void *data, size_t len);
/* True if text is exactly 2*len lower-case digits, which then stand in out; out is untouched otherwise. */
bool hex_decode(void *out, size_t len, const char *text, size_t text_len);
/* Could the text be the beginning of an id, or all of a short one: 6 to 32 digits? Names like that are mistaken for ids. */
bool hex_like_id(const char *text);

#endif
