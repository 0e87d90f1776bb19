#include "hex.h"

#include <string.h>

void
hex_encode(char *out, const void *data, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *p = data;

	for (size_t i = 0; i < len; i++) {
		out[2 * i] = digits[p[i] >> 4];
		out[2 * i + 1] = digits[p[i] & 15];
	}
	out[2 * len] = '\0';
}

static int
value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

bool
hex_decode(void *out, size_t len, const char *text, size_t text_len)
{
	uint8_t *p = out;

	if (text_len != 2 * len)
		return false;
	for (size_t i = 0; i < text_len; i++)
		if (value(text[i]) < 0)
			return false;
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(value(text[2 * i]) * 16 + value(text[2 * i + 1]));
	return true;
}

bool
hex_like_id(const char *text)
{
	size_t len = strspn(text, "0123456789abcdef");

	return text[len] == '\0' && len >= 6 && len <= 32;
}
