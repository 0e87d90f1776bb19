#ifndef LANES_H
#define LANES_H
#include <stddef.h>
#include <string.h>

/*
 * Sums of arrays in sixteen lanes: element i goes to lane i % 16, in ascending order, and the lanes are folded by halves, 8 + 8, 4 + 4,
 * 2 + 2, 1 + 1. The order is part of every result that is made of them. For functions under CPU_CLONES; a vector is never passed
 * by value.
 */
typedef float lanes16 __attribute__((vector_size(64)));
typedef float lanes16_any __attribute__((vector_size(64), aligned(4), may_alias));
#define LANES_SIZE ((size_t)16)
/* Before a loop whose elements do not hang on each other, although in and out may be one array. */
#if defined(__clang__)
#define LANES_FREE _Pragma("clang loop vectorize(assume_safety)")
#else
#define LANES_FREE _Pragma("GCC ivdep")
#endif
#define LANES_AT(p) (*(const lanes16_any *)(const void *)(p))
#define LANES_TO(p) (*(lanes16_any *)(void *)(p))

/* The first n < 16 elements, zeros behind them. */
static inline void
lanes_part(lanes16 *to, const float *p, size_t n)
{
	float t[LANES_SIZE] = {0};

	memcpy(t, p, n * sizeof(*t));
	memcpy(to, t, sizeof(t));
}

static inline float
lanes_fold(const lanes16 *v)
{
	float t[LANES_SIZE];

	memcpy(t, v, sizeof(t));
	for (size_t half = LANES_SIZE / 2; half > 0; half /= 2)
		for (size_t i = 0; i < half; i++)
			t[i] += t[i + half];
	return t[0];
}

#endif
