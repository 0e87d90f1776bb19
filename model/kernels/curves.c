#include "curves.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "cpu.h"
#include "lanes.h"

#define ALWAYS static inline __attribute__((always_inline))

/*
 * Numbers pass in pieces, and each piece step by step: the operations of one number hang on each other for longer than CPUs look ahead, so
 * that a loop over all of them would mostly wait.
 *
 * e^x = (p + 1) scale, of x = k ln2 + r, |r| <= ln2 / 2: p = e^r - 1 by Cephes' polynomial, scale = 2^k. Adding and taking away `round`
 * leaves the nearest whole number, which stands in the low bits on the way.
 */
#define PIECE ((size_t)256)
struct powers {
	float p[PIECE]; /* at first x, which LEAST has passed */
	float scale[PIECE];
};
#define LEAST(x) ((x) < -87.0f ? -87.0f : (x))
#define MOST(x) ((x) > 88.0f ? 88.0f : (x))

ALWAYS void
raise(struct powers *e, size_t n, bool below)
{
	const float round = 12582912.0f;

	for (size_t i = 0; i < n; i++) {
		uint32_t bits, origin;
		float x = below ? e->p[i] : MOST(e->p[i]), t;
		t = x * 1.44269504088896341f + round;
		memcpy(&bits, &t, sizeof(bits));
		memcpy(&origin, &round, sizeof(origin));
		bits = (bits - origin + 127) << 23;
		memcpy(&e->scale[i], &bits, sizeof(bits));
		t -= round;
		x = x - t * 0.693359375f;
		e->p[i] = x + t * 2.12194440e-4f;
	}
	for (size_t i = 0; i < n; i++) {
		float r = e->p[i], p = 1.9875691500e-4f;
		p = p * r + 1.3981999507e-3f;
		p = p * r + 8.3334519073e-3f;
		p = p * r + 4.1665795894e-2f;
		p = p * r + 1.6666665459e-1f;
		p = p * r + 5.0000001201e-1f;
		e->p[i] = p * (r * r) + r;
	}
}
#define POWER ((p + 1.0f) * scale)

/* With e = e^(-2 |x|) - 1, which keeps its digits near zero: -e / (e + 2). */
ALWAYS float
hyperbolic(float x, float p, float scale)
{
	float e = p * scale + (scale - 1.0f);

	e = e / (e + 2.0f);
	return x < 0 ? e : -e;
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
#define TANH_SLOPE 1.59576912160573071f /* 2 sqrt(2 / pi) */
#define TANH_CUBE 0.07135481627159f /* 0.044715 of it */

ALWAYS float
gelu_slope(float x, float bell)
{
	return 0.5f * (1.0f + error_function(x * ROOT_HALF, bell)) + x * (BELL_TOP * bell);
}

/* Flat from there on, but nothing times infinity is no number. */
ALWAYS float
not_flat(float x)
{
	x = x < -10.0f ? -10.0f : x;
	return x > 10.0f ? 10.0f : x;
}

/* e: e^-u, where (1 + tanh(u / 2)) / 2, the sigmoid of u, is GELU's factor. */
ALWAYS float
gelu_tanh_slope(float x, float e)
{
	float z = x * x, s = 1.0f / (1.0f + e), inner = TANH_SLOPE + 3.0f * TANH_CUBE * z;

	/* 1 - s without losing digits. */
	return s + x * (e * s) * (s * inner);
}

ALWAYS float
silu_slope(float x, float s)
{
	return s * (1.0f + x * (1.0f - s));
}

/* value: of x and of p and scale, the parts of e^power. */
#define CURVE(name, power, value) \
	CPU_CLONES static void name##_all(float *y, const float *from, size_t n) \
	{ \
		struct powers e; \
		for (size_t at = 0, some; at < n; at += some) { \
			some = n - at < PIECE ? n - at : PIECE; \
			for (size_t i = 0; i < some; i++) { \
				float x = from[at + i], u = power; \
				e.p[i] = LEAST(u); \
			} \
			raise(&e, some, false); \
			LANES_FREE \
			for (size_t i = 0; i < some; i++) { \
				float x = from[at + i], p = e.p[i], scale = e.scale[i]; \
				(void)x; \
				y[at + i] = value; \
			} \
		} \
	} \
	void curves_##name(float *y, const float *x, size_t n) \
	{ \
		name##_all(y, x, n); \
	}

#define SIGMOID (1.0f / (1.0f + POWER))
CURVE(exp, x, POWER)
CURVE(sigmoid, -x, SIGMOID)
CURVE(tanh, x < 0 ? x + x : -(x + x), hyperbolic(x, p, scale))
CURVE(gelu, -0.5f * x * x, 0.5f * x * (1.0f + error_function(x * ROOT_HALF, POWER)))
CURVE(gelu_tanh, -(x *(TANH_SLOPE + TANH_CUBE * (x * x))), x *SIGMOID)
CURVE(silu, -x, x *SIGMOID)
CURVE(gelu_slope, -0.5f * x * x, gelu_slope(x, POWER))
CURVE(gelu_tanh_slope, -not_flat(x) * (TANH_SLOPE + TANH_CUBE * (not_flat(x) * not_flat(x))),
    gelu_tanh_slope(not_flat(x), POWER))
CURVE(silu_slope, -x, silu_slope(x, SIGMOID))

#define LARGER(a, b) ((b) > (a) ? (b) : (a))

/* In any order the largest is the same. Each loop has a constant length, so that none goes number by number. */
ALWAYS float
largest_of_lanes(float lanes[LANES_SIZE])
{
	for (size_t k = 0; k < 8; k++)
		lanes[k] = LARGER(lanes[k], lanes[k + 8]);
	for (size_t k = 0; k < 4; k++)
		lanes[k] = LARGER(lanes[k], lanes[k + 4]);
	float even = LARGER(lanes[0], lanes[2]), odd = LARGER(lanes[1], lanes[3]);
	return LARGER(even, odd);
}

ALWAYS float
largest(const float *x, size_t n)
{
	float lanes[LANES_SIZE], first = x[0];

	for (size_t k = 0; k < LANES_SIZE; k++)
		lanes[k] = first;
	for (; n >= LANES_SIZE; n -= LANES_SIZE, x += LANES_SIZE)
		for (size_t k = 0; k < LANES_SIZE; k++)
			lanes[k] = LARGER(lanes[k], x[k]);
	for (size_t k = 0; k < n; k++)
		lanes[k] = LARGER(lanes[k], x[k]);
	return largest_of_lanes(lanes);
}

CPU_CLONES static void
find_largest(float *top, const float *x, size_t n)
{
	*top = largest(x, n);
}

float
curves_largest(const float *x, size_t n)
{
	float top;

	find_largest(&top, x, n);
	return top;
}

/* Whole lanes throughout: a loop that ends number by number costs as much as the rest of a short row. */
CPU_CLONES static void
soften(float *row, size_t n)
{
	size_t all = (n + LANES_SIZE - 1) / LANES_SIZE * LANES_SIZE, own = LANES_SIZE - (all - n);
	float *last = row + all - LANES_SIZE, lanes[LANES_SIZE] = {0}, first = row[0];
	struct powers e;

	for (size_t k = 0; k < LANES_SIZE; k++)
		last[k] = k < own ? last[k] : first;
	float top = largest(row, all);
	for (size_t at = 0, some; at < all; at += some) {
		some = all - at < PIECE ? all - at : PIECE;
		for (size_t i = 0; i < some; i++)
			e.p[i] = LEAST(row[at + i] - top);
		raise(&e, some, true);
		for (size_t i = 0; i < some; i++)
			row[at + i] = (e.p[i] + 1.0f) * e.scale[i];
	}
	for (size_t k = 0; k < LANES_SIZE; k++)
		last[k] = k < own ? last[k] : 0;
	LANES_ADD(lanes, all, LANES_FOUR(row + i), row[i]);
	lanes16 sum = LANES_AT(lanes);
	float scale = 1.0f / lanes_fold(&sum);
	for (size_t i = 0; i < all; i++)
		row[i] *= scale;
}

void
curves_softmax(float *row, size_t n)
{
	soften(row, n);
}

/* x = k ln2 + r, |r| <= ln2 / 2, then Taylor to the tenth power; k is rounded up from half below. Nothing is left of less than -700. */
ALWAYS double
falling(double x)
{
	const double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
	const double round = 6755399441055744.0;
	uint64_t bits, origin, keep = x < -700 ? 0 : UINT64_MAX;
	double y, k, scale, r, sum;

	y = x * 0x1.71547652b82fep0 - 0.5;
	k = (y + round) - round;
	k = k < y ? k + 1 : k;
	y = k + round;
	memcpy(&bits, &y, sizeof(bits));
	memcpy(&origin, &round, sizeof(origin));
	bits = ((bits - origin + 1023) << 52) & keep;
	memcpy(&scale, &bits, sizeof(scale));
	r = (x - k * ln2_high) - k * ln2_low;
	memcpy(&bits, &r, sizeof(bits));
	bits &= keep;
	memcpy(&r, &bits, sizeof(r));
	sum = 1.0 / 3628800;
	sum = sum * r + 1.0 / 362880;
	sum = sum * r + 1.0 / 40320;
	sum = sum * r + 1.0 / 5040;
	sum = sum * r + 1.0 / 720;
	sum = sum * r + 1.0 / 120;
	sum = sum * r + 1.0 / 24;
	sum = sum * r + 1.0 / 6;
	sum = sum * r + 1.0 / 2;
	sum = sum * r + 1;
	return (sum * r + 1) * scale;
}

double
curves_exp_negative(double x)
{
	return falling(x);
}

CPU_CLONES static void
fall_all(double *powers, const float *x, size_t n, double top)
{
	for (size_t i = 0; i < n; i++)
		powers[i] = falling((double)x[i] - top);
}

void
curves_exp_below(double *powers, const float *x, size_t n, double top)
{
	fall_all(powers, x, n, top);
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
