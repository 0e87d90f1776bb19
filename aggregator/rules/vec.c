#include "vec.h"

#include <string.h>

#include "cpu.h"

/* Partial sums of vec_sum_squares; part of the result's definition, so it never changes. */
#define LANES 8

CPU_CLONES static uint32_t
any_not_finite(const float *x, size_t n)
{
	uint32_t bad = 0;

	/* On the bits: a comparison per element that the compiler can do in vectors and cannot assume away. */
	for (size_t i = 0; i < n; i++) {
		uint32_t bits;
		memcpy(&bits, &x[i], sizeof(bits));
		bad |= (bits & 0x7f800000u) == 0x7f800000u;
	}
	return bad;
}

bool
vec_all_finite(const float *x, size_t n)
{
	return any_not_finite(x, n) == 0;
}

CPU_CLONES static double
sum_squares(const float *x, size_t n)
{
	double part[LANES] = {0};
	size_t whole = n - n % LANES;
	double sum = 0;

	for (size_t i = 0; i < whole; i += LANES)
		for (size_t k = 0; k < LANES; k++)
			part[k] += (double)x[i + k] * (double)x[i + k];
	for (size_t i = whole; i < n; i++)
		part[i - whole] += (double)x[i] * (double)x[i];
	for (size_t k = 0; k < LANES; k++)
		sum += part[k];
	return sum;
}

double
vec_sum_squares(const float *x, size_t n)
{
	return sum_squares(x, n);
}
