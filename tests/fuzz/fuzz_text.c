/* The readers of small things in text: numbers, sizes, hexadecimal, base64. What is read prints to the same text where a value
 * has one spelling. */
#include <math.h>

#include "base64.h"
#include "fuzz.h"
#include "hex.h"
#include "num.h"

static void
numbers(const char *text)
{
	uint64_t n = 7, small = 7;
	double d = 7;

	if (!num_u64(text, UINT64_MAX, &n))
		require(n == 7);
	else
		require(text[strspn(text, "0123456789")] == '\0');
	if (num_u64(text, 100, &small))
		require(small == n && small <= 100);
	if (num_double(text, &d))
		require(isfinite(d));
	else
		require(d == 7);
	(void)num_bytes(text, &n);
}

static void
hex(const char *text, size_t len)
{
	uint8_t value[512];
	char back[2 * sizeof(value) + 1];

	if (len / 2 > sizeof(value) || !hex_decode(value, len / 2, text, len))
		return;
	hex_encode(back, value, len / 2);
	require(strlen(back) == len && memcmp(back, text, len) == 0);
}

static void
base64(const char *text, size_t len)
{
	size_t room = len / 2, n = room;
	uint8_t *value = malloc(len + 1);
	char *back = malloc(len + 8);

	require(value && back);
	/* Too little room is found before it is passed. */
	(void)!base64_decode(value, &n, text, len);
	require(n <= room);
	n = len;
	if (base64_decode(value, &n, text, len) == ERR_OK) {
		require(n <= len && BASE64_LEN(n) == len);
		base64_encode(back, value, n);
		require(memcmp(back, text, len) == 0);
	}
	free(value);
	free(back);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = fuzz_string(data, len);

	numbers(text);
	hex(text, len);
	base64(text, len);
	free(text);
	return 0;
}
