#include "rotate.h"

#include <math.h>
#include <string.h>

#include "cpu.h"
#include "prng.h"

#define LANES 16

/* Lowered to what the machine has. */
typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));
typedef uint32_t words __attribute__((vector_size(LANES * sizeof(float))));

#define TOP 0x80000000u
/* Butterflies within a register: what comes from the other element, plus or minus its own. */
#define NEAR(x, signs, ...) \
	(__builtin_shufflevector(x, x, __VA_ARGS__) + (lanes)((words)(x) ^ (signs)))

/* Distances 1 to 8. */
static inline void
near(float *x, size_t n)
{
	const words s1 = {0, TOP, 0, TOP, 0, TOP, 0, TOP, 0, TOP, 0, TOP, 0, TOP, 0, TOP};
	const words s2 = {0, 0, TOP, TOP, 0, 0, TOP, TOP, 0, 0, TOP, TOP, 0, 0, TOP, TOP};
	const words s4 = {0, 0, 0, 0, TOP, TOP, TOP, TOP, 0, 0, 0, 0, TOP, TOP, TOP, TOP};
	const words s8 = {0, 0, 0, 0, 0, 0, 0, 0, TOP, TOP, TOP, TOP, TOP, TOP, TOP, TOP};

	for (size_t i = 0; i < n; i += LANES) {
		lanes *at = (lanes *)(void *)(x + i), y = *at;
		y = NEAR(y, s1, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
		y = NEAR(y, s2, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
		y = NEAR(y, s4, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
		*at = NEAR(y, s8, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
	}
}

/* Distance h. */
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

/* Distances h and 2h, h a multiple of LANES, in one pass over memory. */
static inline void
wide_two(float *x, size_t n, size_t h)
{
	for (size_t i = 0; i < n; i += 4 * h)
		for (size_t k = i; k < i + h; k += LANES) {
			lanes *a = (lanes *)(void *)(x + k), *b = (lanes *)(void *)(x + k + h);
			lanes *c = (lanes *)(void *)(x + k + 2 * h);
			lanes *d = (lanes *)(void *)(x + k + 3 * h);
			lanes ab = *a + *b, a_b = *a - *b, cd = *c + *d, c_d = *c - *d;
			*a = ab + cd;
			*b = a_b + c_d;
			*c = ab - cd;
			*d = a_b - c_d;
		}
}

CPU_CLONES static void
transform(float *x, size_t n, float scale)
{
	size_t h = 1;

	if (n >= LANES) {
		near(x, n);
		for (h = LANES; 4 * h <= n; h *= 4)
			wide_two(x, n, h);
	}
	for (; h < n; h *= 2)
		wide(x, n, h);
	for (size_t i = 0; i < n; i++)
		x[i] *= scale;
}

/* Flips the sign of x[i] where bit i is set. n is a multiple of 8. */
CPU_CLONES static void
change_signs(float *x, const uint64_t *bits, size_t n)
{
	for (size_t i = 0; i < n; i += 8) {
		uint32_t some = (uint32_t)(bits[i / 64] >> (i % 64)) & 0xff, y[8];
		memcpy(y, x + i, sizeof(y));
		for (size_t k = 0; k < 8; k++)
			y[k] ^= some & 1u << k ? TOP : 0;
		memcpy(x + i, y, sizeof(y));
	}
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
