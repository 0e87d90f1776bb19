#include "curves.h"

#include <stdint.h>
#include <string.h>

#include "cpu.h"
#include "lanes.h"

#define ALWAYS static inline __attribute__((always_inline))

/* x = k ln2 + r, |r| <= ln2 / 2; e^r by Cephes' polynomial. Adding and taking away ROUND leaves the nearest whole number, which stands
 * in the low bits on the way. */
ALWAYS float
power(float x)
{
	const float round = 12582912.0f;
	uint32_t bits, origin;
	float scale, t, r, p;

	x = x < -87.0f ? -87.0f : x;
	x = x > 88.0f ? 88.0f : x;
	t = x * 1.44269504088896341f + round;
	memcpy(&bits, &t, sizeof(bits));
	memcpy(&origin, &round, sizeof(origin));
	bits = (bits - origin + 127) << 23;
	memcpy(&scale, &bits, sizeof(scale));
	t -= round;
	r = x - t * 0.693359375f;
	r = r + t * 2.12194440e-4f;
	p = 1.9875691500e-4f;
	p = p * r + 1.3981999507e-3f;
	p = p * r + 8.3334519073e-3f;
	p = p * r + 4.1665795894e-2f;
	p = p * r + 1.6666665459e-1f;
	p = p * r + 5.0000001201e-1f;
	p = p * (r * r) + r;
	return (p + 1.0f) * scale;
}

ALWAYS float
logistic(float x)
{
	return 1.0f / (1.0f + power(-x));
}

/* Cephes' polynomial near zero, where 1 - 2 / (e^2x + 1) loses digits. */
ALWAYS float
hyperbolic(float x)
{
	float a = x < 0 ? -x : x, z = x * x, far, near;

	near = -5.70498872745e-3f;
	near = near * z + 2.06390887954e-2f;
	near = near * z + -5.37397155531e-2f;
	near = near * z + 1.33314422036e-1f;
	near = near * z + -3.33332819422e-1f;
	near = near * z * x + x;
	far = 1.0f - 2.0f / (power(a + a) + 1.0f);
	far = x < 0 ? -far : far;
	return a < 0.625f ? near : far;
}

/* Abramowitz and Stegun, 7.1.26; `bell` is e^(-x x). */
ALWAYS float
error_function(float x, float bell)
{
	float a = x < 0 ? -x : x, t = 1.0f / (1.0f + 0.3275911f * a), p;

	p = 1.061405429f;
	p = p * t + -1.453152027f;
	p = p * t + 1.421413741f;
	p = p * t + -0.284496736f;
	p = p * t + 0.254829592f;
	p = 1.0f - p * t * bell;
	return x < 0 ? -p : p;
}

#define ROOT_HALF 0.70710678118654752f
#define BELL_TOP 0.39894228040143268f /* 1 / sqrt(2 pi) */
#define TANH_SLOPE 0.79788456080286536f /* sqrt(2 / pi) */
#define TANH_CUBE 0.044715f

ALWAYS float
gelu(float x)
{
	return 0.5f * x * (1.0f + error_function(x * ROOT_HALF, power(-0.5f * x * x)));
}

ALWAYS float
gelu_slope(float x)
{
	float bell = power(-0.5f * x * x);

	return 0.5f * (1.0f + error_function(x * ROOT_HALF, bell)) + x * (BELL_TOP * bell);
}

ALWAYS float
gelu_tanh(float x)
{
	return 0.5f * x * (1.0f + hyperbolic(TANH_SLOPE * (x + TANH_CUBE * (x * x * x))));
}

ALWAYS float
gelu_tanh_slope(float x)
{
	float t = hyperbolic(TANH_SLOPE * (x + TANH_CUBE * (x * x * x))), z = x * x;

	/* Long flat there, but nothing times infinity is no number. */
	z = z > 1e30f ? 1e30f : z;
	float inner = TANH_SLOPE * (1.0f + 3.0f * TANH_CUBE * z);
	return 0.5f * (1.0f + t) + 0.5f * x * ((1.0f - t * t) * inner);
}

ALWAYS float
silu_slope(float x)
{
	float s = logistic(x);

	return s * (1.0f + x * (1.0f - s));
}

#define CURVE(name, value) \
	CPU_CLONES static void name##_all(float *y, const float *from, size_t n) \
	{ \
		LANES_FREE \
		for (size_t i = 0; i < n; i++) { \
			float x = from[i]; \
			y[i] = value; \
		} \
	} \
	void curves_##name(float *y, const float *x, size_t n) \
	{ \
		name##_all(y, x, n); \
	}

CURVE(exp, power(x))
CURVE(sigmoid, logistic(x))
CURVE(tanh, hyperbolic(x))
CURVE(gelu, gelu(x))
CURVE(gelu_tanh, gelu_tanh(x))
CURVE(silu, x *logistic(x))
CURVE(gelu_slope, gelu_slope(x))
CURVE(gelu_tanh_slope, gelu_tanh_slope(x))
CURVE(silu_slope, silu_slope(x))

CPU_CLONES static void
soften(float *row, size_t n)
{
	size_t whole = n - n % LANES_SIZE;
	float top = row[0];
	lanes16 sum = {0}, part;

	for (size_t i = 1; i < n; i++)
		top = row[i] > top ? row[i] : top;
	for (size_t i = 0; i < n; i++)
		row[i] = power(row[i] - top);
	for (size_t i = 0; i < whole; i += LANES_SIZE)
		sum += LANES_AT(row + i);
	lanes_part(&part, row + whole, n - whole);
	sum += part;
	float scale = 1.0f / lanes_fold(&sum);
	for (size_t i = 0; i < n; i++)
		row[i] *= scale;
}

void
curves_softmax(float *rows, size_t n, size_t width)
{
	for (size_t i = 0; i < n; i++)
		soften(rows + i * width, width);
}

/* x = k ln2 + r, |r| <= ln2 / 2, then Taylor to the tenth power. */
double
curves_exp_negative(double x)
{
	static const double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
	static const double inverse[] = {1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
	    1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2, 1, 1};

	if (!(x >= -700))
		return x < 0 ? 0 : x;
	int64_t k = (int64_t)(x * 0x1.71547652b82fep0 - 0.5);
	double r = (x - (double)k * ln2_high) - (double)k * ln2_low, sum = 0;
	for (size_t i = 0; i < sizeof(inverse) / sizeof(inverse[0]); i++)
		sum = sum * r + inverse[i];
	uint64_t bits = (uint64_t)(1023 + k) << 52;
	double scale;
	memcpy(&scale, &bits, sizeof(scale));
	return sum * scale;
}

/* Quarters of a turn taken off, Taylor within an eighth on either side. */
void
curves_turn(double angle, double *sine, double *cosine)
{
	const double high = 0x1.921fb544p0, low = 0x1.0b4611a626331p-34; /* pi / 2 */
	int64_t quarters = (int64_t)(angle / (high + low) + 0.5);
	double r = (angle - (double)quarters * high) - (double)quarters * low, z = r * r;
	double s = 0, c = 0;

	for (int i = 15; i >= 3; i -= 2)
		s = (1 + s) * -z / (i * (i - 1));
	for (int i = 14; i >= 2; i -= 2)
		c = (1 + c) * -z / (i * (i - 1));
	s = r * (1 + s);
	c = 1 + c;
	switch (quarters & 3) {
	case 0:
		*sine = s, *cosine = c;
		break;
	case 1:
		*sine = c, *cosine = -s;
		break;
	case 2:
		*sine = -s, *cosine = -c;
		break;
	default:
		*sine = -c, *cosine = s;
	}
}
