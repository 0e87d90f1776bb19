#ifndef NORMAL_H
#define NORMAL_H
#include <math.h>

#include "prng.h"

/* Normally distributed numbers with a standard deviation of 0.01: what deltas look like to a codec. */
static inline double
normal_next(struct prng *r)
{
	return sqrt(-2 * log(1 - prng_double(r))) * cos(6.283185307179586 * prng_double(r));
}

static inline void
normal_fill(float *values, size_t n, uint64_t seed)
{
	struct prng r;

	prng_seed(&r, seed);
	for (size_t i = 0; i < n; i++)
		values[i] = (float)(0.01 * normal_next(&r));
}

#endif
