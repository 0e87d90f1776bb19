#ifndef LANES_H
#define LANES_H
#include <stddef.h>
#include <string.h>

/*
 * Sums of arrays in sixteen lanes: element i goes to lane i % 16, in ascending order, and the lanes are folded by halves, 8 + 8, 4 + 4,
 * 2 + 2, 1 + 1. The order is part of every result that is made of such sums. For functions under CPU_CLONES; a vector is never passed
 * by value.
 */
typedef float lanes16 __attribute__((vector_size(64)));
typedef float lanes16_any __attribute__((vector_size(64), aligned(4), may_alias));
#define LANES_SIZE ((size_t)16)
/* Stands before a loop whose iterations are independent, although input and output may be one array. */
#if defined(__clang__)
#define LANES_FREE _Pragma("clang loop vectorize(assume_safety)")
#else
#define LANES_FREE _Pragma("GCC ivdep")
#endif
/*
 * lanes[i % 16] += a term, for i < n ascending. four: an expression for the terms of elements i to i + 3, a vector, mostly of LANES_FOUR;
 * one: an expression for the term of element i. Four vectors of four floats, which compilers keep in registers on every machine, wider
 * vectors not.
 */
typedef float lanes4 __attribute__((vector_size(16)));
typedef float lanes4_any __attribute__((vector_size(16), aligned(4), may_alias));
#define LANES_FOUR(p) ((lanes4) * (const lanes4_any *)(const void *)(p))
#define LANES_ADD(lanes, n, four, one) \
	do { \
		lanes4_any *to_ = (lanes4_any *)(void *)(lanes); \
		lanes4 a_ = to_[0], b_ = to_[1], c_ = to_[2], d_ = to_[3]; \
		size_t i = 0, lane_ = 0; \
		while (i + 16 <= (n)) { \
			a_ += (four), i += 4; \
			b_ += (four), i += 4; \
			c_ += (four), i += 4; \
			d_ += (four), i += 4; \
		} \
		to_[0] = a_, to_[1] = b_, to_[2] = c_, to_[3] = d_; \
		for (; i + 4 <= (n); i += 4, lane_ += 4) \
			*to_++ += (four); \
		for (; i < (n); i++, lane_++) \
			(lanes)[lane_] += (one); \
	} while (0)
#define LANES_AT(p) (*(const lanes16_any *)(const void *)(p))
#define LANES_TO(p) (*(lanes16_any *)(void *)(p))

/* Loads the first n < 16 elements; the other lanes become zeros. */
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
	const float *t = (const float *)v;
	lanes4 low = LANES_FOUR(t) + LANES_FOUR(t + 8),
	       high = LANES_FOUR(t + 4) + LANES_FOUR(t + 12);
	lanes4 x = low + high;

	return (x[0] + x[2]) + (x[1] + x[3]);
}

#endif
