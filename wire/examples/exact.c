#include "exact.h"

#include <math.h>

#include "prng.h"

#define LN2 0x1.62e42fefa39efp-1

double
exact_ln(double x)
{
	int exponent;
	double m = frexp(x, &exponent) * 2; /* 1 <= m < 2 */
	double t = (m - 1) / (m + 1), square = t * t, sum = 0;

	for (int k = 39; k >= 1; k -= 2)
		sum = sum * square + 1.0 / k;
	return 2 * t * sum + (exponent - 1) * LN2;
}

double
exact_exp(double x)
{
	if (x < -700)
		return 0;
	double n = floor(x / LN2 + 0.5), rest = x - n * LN2, sum = 1;

	for (int k = 18; k >= 1; k--)
		sum = 1 + sum * rest / k;
	return ldexp(sum, (int)n);
}

double
exact_normal(struct prng *rng)
{
	for (;;) {
		double u = 2 * prng_double(rng) - 1, v = 2 * prng_double(rng) - 1;
		double s = u * u + v * v;
		if (s > 0 && s < 1)
			return u * sqrt(-2 * exact_ln(s) / s);
	}
}
