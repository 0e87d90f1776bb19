#ifndef FUZZ_H
#define FUZZ_H
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What every target defines; 0 always. What must not be aborts. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static inline void
require(int ok)
{
	if (!ok)
		abort();
}

/* The input as a string, the caller's to free. */
static inline char *
fuzz_string(const uint8_t *data, size_t len)
{
	char *text = malloc(len + 1);

	require(text != NULL);
	if (len > 0)
		memcpy(text, data, len);
	text[len] = '\0';
	return text;
}

#endif
