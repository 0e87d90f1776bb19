#include "shown.h"

#include <string.h>

#include "json_scan.h"

/* Ranges of code points: C0; DEL and C1; what sets a direction, separates lines, or isolates. */
static const struct {
	unsigned from, to;
} hidden[] = {
    {0x0000, 0x001f},
    {0x007f, 0x009f},
    {0x061c, 0x061c},
    {0x200e, 0x200f},
    {0x2028, 0x202e},
    {0x2066, 0x2069},
};

size_t
shown_decode(const char *p, size_t left, unsigned *code)
{
	static const unsigned char lead[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	const unsigned char *bytes = (const unsigned char *)p;
	size_t n = json_scan_utf8(bytes, left);

	*code = n ? bytes[0] & lead[n] : 0;
	for (size_t i = 1; i < n; i++)
		*code = *code << 6 | (bytes[i] & 0x3fu);
	return n;
}

size_t
shown_char(const char *p, size_t left)
{
	unsigned code;
	size_t n = shown_decode(p, left, &code);

	for (size_t i = 0; i < sizeof(hidden) / sizeof(*hidden); i++)
		if (code >= hidden[i].from && code <= hidden[i].to)
			return 0;
	return n;
}

bool
shown_is(const char *text)
{
	size_t left = strlen(text), n;

	for (; left > 0; text += n, left -= n) {
		n = shown_char(text, left);
		if (n == 0)
			return false;
	}
	return true;
}

void
shown_clean(char *text)
{
	size_t left = strlen(text);

	while (left > 0) {
		size_t n = shown_char(text, left);
		if (n == 0)
			*text = '?';
		text += n ? n : 1;
		left -= n ? n : 1;
	}
}
