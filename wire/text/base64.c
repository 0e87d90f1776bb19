#include "base64.h"

#include <stdint.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void
base64_encode(char *out, const void *data, size_t len)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < len; i += 3) {
		size_t have = len - i < 3 ? len - i : 3;
		uint32_t v = (uint32_t)p[i] << 16;
		if (have > 1)
			v |= (uint32_t)p[i + 1] << 8;
		if (have > 2)
			v |= p[i + 2];
		*out++ = alphabet[v >> 18];
		*out++ = alphabet[v >> 12 & 63];
		*out++ = have > 1 ? alphabet[v >> 6 & 63] : '=';
		*out++ = have > 2 ? alphabet[v & 63] : '=';
	}
	*out = '\0';
}

static int
value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes one quartet with `pad` padding characters; -1 if it is not canonical. */
static int
quartet(const char *text, size_t pad, uint8_t out[3])
{
	uint32_t v = 0;

	for (size_t i = 0; i < 4; i++) {
		int d = i >= 4 - pad ? 0 : value(text[i]);
		if (d < 0)
			return -1;
		v = v << 6 | (uint32_t)d;
	}
	if ((pad == 1 && (v & 0xff)) || (pad == 2 && (v & 0xffff)))
		return -1;
	out[0] = (uint8_t)(v >> 16);
	out[1] = (uint8_t)(v >> 8);
	out[2] = (uint8_t)v;
	return 0;
}

enum err
base64_decode(void *out, size_t *len, const char *text, size_t text_len)
{
	uint8_t *to = out;
	size_t pad = 0;

	if (text_len % 4 != 0)
		return ERR_INVALID;
	if (text_len > 0 && text[text_len - 1] == '=')
		pad = text[text_len - 2] == '=' ? 2 : 1;
	size_t need = text_len / 4 * 3 - pad;
	if (need > *len)
		return ERR_LIMIT;
	for (size_t i = 0; i < text_len; i += 4) {
		uint8_t three[3];
		size_t here = i + 4 == text_len ? pad : 0;
		if (quartet(text + i, here, three))
			return ERR_INVALID;
		for (size_t k = 0; k < 3 - here; k++)
			*to++ = three[k];
	}
	*len = need;
	return ERR_OK;
}
