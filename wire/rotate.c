#include "rotate.h"

#include <math.h>
#include <string.h>

#include "cpu.h"
#include "prng.h"

#define NARROW 16 /* elements that one vector register may hold */

/* Butterflies of elements h apart, h < NARROW: within registers. */
static inline void
near(float *x, size_t n, size_t h)
{
	for (size_t i = 0; i < n; i += NARROW) {
		float y[NARROW];
		for (size_t k = 0; k < NARROW; k++) {
			float a = x[i + (k & ~h)], b = x[i + (k | h)];
			y[k] = k & h ? a - b : a + b;
		}
		memcpy(x + i, y, sizeof(y));
	}
}

static inline void
wide(float *x, size_t n, size_t h)
{
	for (size_t i = 0; i < n; i += 2 * h) {
		float *restrict a = x + i, *restrict b = x + i + h;
		for (size_t k = 0; k < h; k++) {
			float u = a[k], v = b[k];
			a[k] = u + v;
			b[k] = u - v;
		}
	}
}

CPU_CLONES static void
transform(float *x, size_t n, float scale)
{
	if (n < NARROW) {
		for (size_t h = 1; h < n; h *= 2)
			wide(x, n, h);
	} else {
		near(x, n, 1);
		near(x, n, 2);
		near(x, n, 4);
		near(x, n, 8);
		for (size_t h = NARROW; h < n; h *= 2)
			wide(x, n, h);
	}
	for (size_t i = 0; i < n; i++)
		x[i] *= scale;
}

CPU_CLONES static void
change_signs(float *x, const uint64_t *bits, size_t n)
{
	for (size_t i = 0; i < n; i++)
		x[i] = bits[i / 64] >> (i % 64) & 1 ? -x[i] : x[i];
}

static void
draw_signs(uint64_t bits[ROTATE_MAX / 64], size_t n, uint64_t seed, uint64_t block)
{
	struct prng r;

	prng_seed2(&r, seed, block);
	for (size_t i = 0; i < n; i += 64)
		bits[i / 64] = prng_u64(&r);
}

void
rotate_forward(float *x, size_t n, uint64_t seed, uint64_t block)
{
	uint64_t bits[ROTATE_MAX / 64];

	draw_signs(bits, n, seed, block);
	change_signs(x, bits, n);
	transform(x, n, 1 / sqrtf((float)n));
}

void
rotate_back(float *x, size_t n, uint64_t seed, uint64_t block)
{
	uint64_t bits[ROTATE_MAX / 64];

	draw_signs(bits, n, seed, block);
	transform(x, n, 1 / sqrtf((float)n));
	change_signs(x, bits, n);
}
