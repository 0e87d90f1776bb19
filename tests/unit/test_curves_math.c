/* stages: gcc clang address */
/* Our own curves against libm in double precision: the bounds that curves.h states, the extremes, NaN; the same bits wherever an element
 * stands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "curves.h"
#include "prng.h"

#define STRIDE 4099u /* prime: every so many of all patterns of bits */
#define PIECE ((size_t)1021)

typedef void curve(float *y, const float *x, size_t n);

static double
sigmoid(double x)
{
	return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}

static double
gelu(double x)
{
	return 0.5 * x * erfc(-x * M_SQRT1_2);
}

static double
gelu_slope(double x)
{
	return 0.5 * erfc(-x * M_SQRT1_2) + x * exp(-0.5 * x * x) / sqrt(2 * M_PI);
}

static double
gelu_tanh(double x)
{
	return x * sigmoid(2 * sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
}

static double
gelu_tanh_slope(double x)
{
	double u = 2 * sqrt(2 / M_PI) * (x + 0.044715 * x * x * x), s = sigmoid(u);
	double inner = 2 * sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);

	return fabs(x) > 100 ? x > 0 : s + x * s * sigmoid(-u) * inner;
}

static double
silu(double x)
{
	return x * sigmoid(x);
}

static double
silu_slope(double x)
{
	return sigmoid(x) * (1 + x * sigmoid(-x));
}

/* Wrong by at most relative |value| + absolute + sized |x|, from `first` to `last`. */
static const struct row {
	const char *name;
	curve *ours;
	double (*exact)(double x);
	double first, last, relative, absolute, sized;
} rows[] = {
    {"exp", curves_exp, exp, -87, 88, 3e-7, 0, 0},
    {"exp, small", curves_exp, exp, -INFINITY, -87, 0, 2e-38, 0},
    {"sigmoid", curves_sigmoid, sigmoid, -87, INFINITY, 3e-7, 0, 0},
    {"sigmoid, small", curves_sigmoid, sigmoid, -INFINITY, -87, 0, 2e-38, 0},
    {"tanh", curves_tanh, tanh, -INFINITY, INFINITY, 0, 2e-7, 0},
    {"tanh, small", curves_tanh, tanh, -0.5, 0.5, 3e-7, 0, 0},
    {"gelu", curves_gelu, gelu, -1e30, 1e30, 0, 1e-44, 3e-7},
    {"gelu_tanh", curves_gelu_tanh, gelu_tanh, -1e30, 1e30, 0, 1e-44, 3e-7},
    {"silu", curves_silu, silu, -1e30, 1e30, 3e-7, 1e-7, 0},
    {"gelu_slope", curves_gelu_slope, gelu_slope, -1e30, 1e30, 0, 4e-7, 0},
    {"gelu_tanh_slope", curves_gelu_tanh_slope, gelu_tanh_slope, -1e30, 1e30, 0, 1e-6, 0},
    {"silu_slope", curves_silu_slope, silu_slope, -1e30, 1e30, 0, 1.2e-6, 0},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static float
from_bits(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

static void
compare(const struct row *r, const float *x, const float *y, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double a = (double)x[i], want;
		if (!(a >= r->first && a <= r->last))
			continue;
		want = r->exact(a);
		double most = r->relative * fabs(want) + r->absolute + r->sized * fabs(a);
		if (!(fabs((double)y[i] - want) <= most))
			fail_msg(
			    "%s of %.9g is %.9g, exactly %.9g", r->name, a, (double)y[i], want);
	}
}

/* All patterns of bits, a piece at a time. */
static void
everywhere(void **state)
{
	float x[PIECE], y[PIECE];
	uint64_t bits = 0;

	(void)state;
	while (bits <= UINT32_MAX) {
		size_t n = 0;
		for (; n < PIECE && bits <= UINT32_MAX; bits += STRIDE)
			x[n++] = from_bits((uint32_t)bits);
		for (size_t i = 0; i < ROWS; i++) {
			rows[i].ours(y, x, n);
			compare(&rows[i], x, y, n);
			for (size_t k = 0; k < n; k++)
				assert_true(!isnan(x[k]) || isnan(y[k]));
		}
	}
}

/* Where the curves bend, closely. */
static void
around_zero(void **state)
{
	float x[PIECE], y[PIECE];
	struct prng r;

	(void)state;
	prng_seed(&r, 3);
	for (int turn = 0; turn < 400; turn++) {
		float scale = turn % 4 == 0 ? 1 : turn % 4 == 1 ? 5 : turn % 4 == 2 ? 20 : 90;
		for (size_t k = 0; k < PIECE; k++)
			x[k] = scale * (2 * prng_float(&r) - 1);
		for (size_t i = 0; i < ROWS; i++) {
			rows[i].ours(y, x, PIECE);
			compare(&rows[i], x, y, PIECE);
		}
	}
}

/* Of finite numbers all are finite; at the ends of the scale. */
static void
extremes(void **state)
{
	static const float ends[] = {0, -0.0f, 0x1p-149f, -0x1p-149f, 0x1p-126f, 87, -87, 88, -88,
	    89, -89, 104, -104, 1e4f, -1e4f, 1e19f, -1e19f, 1e20f, -1e20f, 0x1.fffffep127f,
	    -0x1.fffffep127f};
	static const float infinite[] = {INFINITY, -INFINITY};
	float y[2];

	(void)state;
	for (size_t i = 0; i < ROWS; i++)
		for (size_t k = 0; k < sizeof(ends) / sizeof(ends[0]); k++) {
			rows[i].ours(y, &ends[k], 1);
			if (!isfinite(y[0]))
				fail_msg(
				    "%s of %g is %g", rows[i].name, (double)ends[k], (double)y[0]);
		}
	curves_sigmoid(y, infinite, 2);
	assert_true(y[0] == 1 && y[1] >= 0 && y[1] < 1e-38f);
	curves_tanh(y, infinite, 2);
	assert_true(y[0] == 1 && y[1] == -1);
	curves_exp(y, infinite, 2);
	assert_true(y[0] > 1.6e38f && isfinite(y[0]) && y[1] >= 0 && y[1] < 2e-38f);
}

/* In place, in any company and alone. */
static void
same_bits_anywhere(void **state)
{
	float x[67], whole[67], alone;
	struct prng r;

	(void)state;
	prng_seed(&r, 8);
	for (size_t k = 0; k < 67; k++)
		x[k] = 12 * (2 * prng_float(&r) - 1);
	for (size_t i = 0; i < ROWS; i++) {
		memcpy(whole, x, sizeof(x));
		rows[i].ours(whole, whole, 67);
		for (size_t k = 0; k < 67; k++) {
			rows[i].ours(&alone, &x[k], 1);
			assert_memory_equal(&alone, &whole[k], sizeof(alone));
		}
	}
}

static void
softmax_row(const float *x, size_t n)
{
	float y[64];
	double top = -INFINITY, sum = 0;

	for (size_t k = 0; k < 64; k++)
		y[k] = k < n ? x[k] : NAN;
	curves_softmax(y, n);
	for (size_t k = n; k < 64; k++)
		assert_true(k < (n + 15) / 16 * 16 ? y[k] == 0 : isnan(y[k]));
	for (size_t k = 0; k < n; k++)
		top = fmax(top, (double)x[k]);
	for (size_t k = 0; k < n; k++)
		sum += exp((double)x[k] - top);
	for (size_t k = 0; k < n; k++) {
		/* The difference is rounded. */
		double far = (double)x[k] - top, want = exp(far) / sum;
		assert_true(fabs((double)y[k] - want) <= (1e-6 - 0x1p-24 * far) * want + 2e-38);
	}
}

static void
softmax(void **state)
{
	float x[40], two[16] = {1, NAN};
	struct prng r;

	(void)state;
	prng_seed(&r, 4);
	for (size_t n = 1; n <= 40; n++)
		for (int turn = 0; turn < 50; turn++) {
			float scale = turn % 2 ? 3 : 40;
			for (size_t k = 0; k < n; k++)
				x[k] = scale * (2 * prng_float(&r) - 1) + (turn % 3 ? 0 : 1e6f);
			softmax_row(x, n);
		}
	curves_softmax(two, 2);
	assert_true(isnan(two[0]) && isnan(two[1]));
	memcpy(two, (float[2]){0x1.fffffep127f, -0x1.fffffep127f}, 2 * sizeof(*two));
	curves_softmax(two, 2);
	assert_true(two[0] == 1 && two[1] < 2e-38f);
}

static void
exp_negative(void **state)
{
	struct prng r;

	(void)state;
	prng_seed(&r, 5);
	for (int i = 0; i < 200000; i++) {
		double x = -(double)prng_float(&r) * (i % 3 ? i % 3 == 1 ? 700 : 1 : 1e-6);
		double want = exp(x), got = curves_exp_negative(x);
		if (!(fabs(got - want) <= 3e-13 * want))
			fail_msg("e^%.17g is %.17g, exactly %.17g", x, got, want);
	}
	assert_true(curves_exp_negative(0) == 1 && curves_exp_negative(-0.0) == 1);
	assert_true(curves_exp_negative(-701) == 0 && curves_exp_negative(-INFINITY) == 0);
	assert_true(curves_exp_negative(-1e308) == 0 && isnan(curves_exp_negative(NAN)));
}

static void
turn(void **state)
{
	struct prng r;
	double s, c;

	(void)state;
	prng_seed(&r, 6);
	for (int i = 0; i < 200000; i++) {
		double x = ((double)prng_float(&r) + (double)prng_float(&r) * 0x1p-24) *
		    (i % 3 ? i % 3 == 1 ? 0x1p24 : 1000 : 7);
		if (x >= 0x1p24)
			continue;
		curves_turn(x, &s, &c);
		if (!(fabs(s - sin(x)) < 1e-9 && fabs(c - cos(x)) < 1e-9))
			fail_msg("%.17g: %.17g, %.17g", x, s - sin(x), c - cos(x));
	}
	for (int i = 0; i < 70000; i++) {
		curves_turn(i, &s, &c);
		assert_true(fabs(s - sin(i)) < 1e-10 && fabs(c - cos(i)) < 1e-10);
	}
	curves_turn(0, &s, &c);
	assert_true(s == 0 && c == 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(everywhere),
	    cmocka_unit_test(around_zero),
	    cmocka_unit_test(extremes),
	    cmocka_unit_test(same_bits_anywhere),
	    cmocka_unit_test(softmax),
	    cmocka_unit_test(exp_negative),
	    cmocka_unit_test(turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
