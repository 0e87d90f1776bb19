#ifndef CODEC_ELEMENTS_H
#define CODEC_ELEMENTS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/* A vector that need not lie in memory as a whole: a user reads parts of it, any part several times if need be. */
struct codec_elements {
	/* Writes elements [first, first + count) to out. The user passes its error on. */
	enum err (*read)(void *context, uint64_t first, size_t count, float *out);
	void *context;
};

/* The elements of an array in memory, which must outlive the result. */
struct codec_elements codec_elements_in(const float *values);

/* Element by element a + b, or a - b, each rounded once. */
struct codec_elements_pair {
	struct codec_elements a, b; /* a.read NULL: zeros */
	bool minus;
};
/* The elements of *pair, which must outlive the result. */
struct codec_elements codec_elements_of(const struct codec_elements_pair *pair);

#endif
