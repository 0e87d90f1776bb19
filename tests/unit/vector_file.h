#ifndef VECTOR_FILE_H
#define VECTOR_FILE_H
#include <ctype.h>
#include <stdio.h>

#include "hex.h"

/* Reads hex digits up to '#' on each line of a vector file. */
static inline void
vector_file(const char *path, uint8_t *out, size_t len)
{
	char line[256], digits[1024];
	size_t n = 0;
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		for (char *p = line; *p && *p != '#'; p++)
			if (isxdigit((unsigned char)*p) && n < sizeof(digits))
				digits[n++] = *p;
	fclose(f);
	assert_true(hex_decode(out, len, digits, n));
}

static inline void
assert_run(const uint8_t *p, size_t len, uint8_t first)
{
	for (size_t i = 0; i < len; i++)
		assert_int_equal(p[i], first + i);
}

#endif
