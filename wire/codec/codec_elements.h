#ifndef CODEC_ELEMENTS_H
#define CODEC_ELEMENTS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/* A vector that is read part by part, several times over where need be, and is nowhere whole. */
struct codec_elements {
	/* Fails with whatever it says. */
	enum err (*read)(void *context, uint64_t first, size_t count, float *out);
	void *context;
};

/* One in memory. */
struct codec_elements codec_elements_in(const float *values);

/* Element by element a + b, or a - b, each rounded once. */
struct codec_elements_pair {
	struct codec_elements a, b; /* a.read NULL: zeros */
	bool minus;
};
/* While *pair lives. */
struct codec_elements codec_elements_of(const struct codec_elements_pair *pair);

#endif
