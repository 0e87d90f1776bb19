#ifndef VALUES_H
#define VALUES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/* A vector that is read part by part, several times over where need be, and is nowhere whole. */
struct codec_values {
	/* Fails with whatever it says. */
	enum err (*read)(void *context, uint64_t first, size_t count, float *out);
	void *context;
};

/* One in memory. */
struct codec_values codec_values_in(const float *values);

/* Element by element a + b, or a - b, each rounded once. */
struct codec_values_pair {
	struct codec_values a, b; /* a.read NULL: zeros */
	bool minus;
};
/* While *pair lives. */
struct codec_values codec_values_of(const struct codec_values_pair *pair);

#endif
