/* stages: gcc clang address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prng.h"
#include "select.h"

#define MOST 16
#define DIMS 5

/* Squared distances of n points of `dims` coordinates. */
static void
measure(double *d2, const double *x, size_t n, size_t dims)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			d2[i * n + j] = 0;
			for (size_t k = 0; k < dims; k++)
				d2[i * n + j] += (x[i * dims + k] - x[j * dims + k]) *
				    (x[i * dims + k] - x[j * dims + k]);
		}
}

static double
combine(const double *w, const double *x, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += w[i] * x[i];
	return sum;
}

static const double five[] = {0, .1, .2, .3, 10};

/* Krum of {0, .1, .2, .3, 10} with f = 1 picks .1: scores .05, .02, .02, .05, about 190; the tie goes to the lower index.
 * Computed. */
static void
krum(void **state)
{
	(void)state;
	double d2[25], w[5];
	/* Whole numbers: rounding must not decide the tie. */
	static const double tens[] = {0, 1, 2, 3, 100};

	measure(d2, tens, 5, 1);
	assert_int_equal(select_krum(d2, 5, 1, 1, w), ERR_OK);
	assert_true(w[1] == 1 && w[0] == 0 && w[2] == 0 && w[3] == 0 && w[4] == 0);
	assert_int_equal(select_krum(d2, 5, 1, 4, w), ERR_OK);
	assert_true(w[0] == 1 && w[3] == 1 && w[4] == 0);
	assert_int_equal(select_krum(d2, 5, 2, 1, w), ERR_INVALID);
	assert_int_equal(select_krum(d2, 4, 1, 1, w), ERR_INVALID);
	assert_int_equal(select_krum(d2, 5, 1, 5, w), ERR_INVALID);
	assert_int_equal(select_krum(d2, 5, 1, 0, w), ERR_INVALID);
}

static void
bulyan(void **state)
{
	(void)state;
	static const double x[] = {1, 2, 3, 1000, 4, 5, 6};
	double d2[49];
	bool picked[7];

	measure(d2, x, 7, 1);
	assert_int_equal(select_bulyan(d2, 7, 1, picked, NULL), ERR_OK);
	size_t count = 0;
	for (size_t i = 0; i < 7; i++)
		count += picked[i];
	assert_int_equal(count, 5);
	assert_false(picked[3]);
	assert_int_equal(select_bulyan(d2, 6, 1, picked, NULL), ERR_INVALID);
	assert_int_equal(select_bulyan(d2, 7, 0, picked, NULL), ERR_OK);
	for (size_t i = 0; i < 7; i++)
		assert_true(picked[i]);
}

/* The geometric median of {0, .1, .2, .3, 10} is .2. Computed. */
static void
median(void **state)
{
	(void)state;
	static const double equal[] = {.2, .2, .2, .2, .2};
	static const double heavy[] = {.9, .025, .025, .025, .025};
	double d2[25], w[5];

	measure(d2, five, 5, 1);
	assert_int_equal(select_median(d2, 5, equal, 1e-6, 10, w, NULL), ERR_OK);
	assert_true(fabs(combine(w, five, 5) - .2) < 1e-4);
	assert_int_equal(select_median(d2, 5, heavy, 1e-6, 10, w, NULL), ERR_OK);
	assert_true(fabs(combine(w, five, 5)) < 1e-4);
	/* Far beyond all others, one vector is as good as absent. */
	static const double far[] = {0, 1, 2, 3, 1e18};
	measure(d2, far, 5, 1);
	assert_int_equal(select_median(d2, 5, equal, .1, 10, w, NULL), ERR_OK);
	assert_true(combine(w, far, 5) >= 0 && combine(w, far, 5) <= 3);
	assert_int_equal(select_median(d2, 5, equal, 0, 10, w, NULL), ERR_INVALID);
}

/* The corners of a square and a vector near its middle, but not there: the median is not one of the vectors, and is found whatever
 * the smoothing is. A copy of the vector to begin with holds nothing there either. */
static void
median_leaves(void **state)
{
	(void)state;
	static const double square[] = {0, 0, 1, 0, 0, 1, 1, 1, .4, .2, .4, .2};
	static const double nu[] = {1e-6, 1e-3};
	double d2[36], w[6], x[6], y[6];

	for (size_t n = 4; n <= 6; n++) {
		double alpha[6], best = INFINITY, got = 0;
		measure(d2, square, n, 2);
		for (size_t i = 0; i < n; i++) {
			alpha[i] = 1.0 / (double)n;
			x[i] = square[2 * i];
			y[i] = square[2 * i + 1];
		}
		for (size_t k = 0; k < 2; k++) {
			assert_int_equal(select_median(d2, n, alpha, nu[k], 60, w, NULL), ERR_OK);
			double px = combine(w, x, n), py = combine(w, y, n);
			got = 0;
			for (size_t i = 0; i < n; i++)
				got += hypot(x[i] - px, y[i] - py);
			/* No point of a fine grid has a smaller sum of distances. */
			best = INFINITY;
			for (double gx = 0; gx <= 1; gx += .01)
				for (double gy = 0; gy <= 1; gy += .01) {
					double sum = 0;
					for (size_t i = 0; i < n; i++)
						sum += hypot(x[i] - gx, y[i] - gy);
					best = sum < best ? sum : best;
				}
			assert_true(got < best + 1e-3);
		}
	}
}

/* In several dimensions the iterations are those of Weiszfeld on the vectors themselves. */
static void
median_reference(void **state)
{
	(void)state;
	double x[MOST * DIMS], d2[MOST * MOST], w[MOST], alpha[MOST], z[DIMS];
	struct prng r;

	prng_seed(&r, 9);
	for (size_t i = 0; i < MOST * DIMS; i++)
		x[i] = prng_double(&r) * (i < DIMS ? 100 : 1);
	for (size_t i = 0; i < MOST; i++)
		alpha[i] = 1.0 / MOST;
	measure(d2, x, MOST, DIMS);
	assert_int_equal(select_median(d2, MOST, alpha, 1e-9, 0, w, NULL), ERR_OK);
	for (size_t k = 0; k < DIMS; k++) {
		z[k] = 0;
		for (size_t i = 0; i < MOST; i++)
			z[k] += w[i] * x[i * DIMS + k];
	}
	/* In the first iteration, which begins at a vector, the nearest other is the least distance. */
	double least = INFINITY;
	for (size_t i = 0; i < MOST; i++) {
		double d = 0;
		for (size_t k = 0; k < DIMS; k++)
			d += (x[i * DIMS + k] - z[k]) * (x[i * DIMS + k] - z[k]);
		if (d > 0 && sqrt(d) < least)
			least = sqrt(d);
	}
	for (unsigned t = 1; t <= 8; t++) {
		double next[DIMS] = {0}, sum = 0;
		for (size_t i = 0; i < MOST; i++) {
			double d = 0;
			for (size_t k = 0; k < DIMS; k++)
				d += (x[i * DIMS + k] - z[k]) * (x[i * DIMS + k] - z[k]);
			double floor = t == 1 ? least : .1;
			d = sqrt(d) > floor ? sqrt(d) : floor;
			sum += alpha[i] / d;
			for (size_t k = 0; k < DIMS; k++)
				next[k] += alpha[i] / d * x[i * DIMS + k];
		}
		for (size_t k = 0; k < DIMS; k++)
			z[k] = next[k] / sum;
		assert_int_equal(select_median(d2, MOST, alpha, .1, t, w, NULL), ERR_OK);
		for (size_t k = 0; k < DIMS; k++) {
			double mine = 0;
			for (size_t i = 0; i < MOST; i++)
				mine += w[i] * x[i * DIMS + k];
			assert_true(fabs(mine - z[k]) < 1e-9);
		}
	}
}

/* v = 0, tau = 1 on {.5, -.5, 100} gives 1/3; no vector moves the result by more than tau / n an iteration. Computed. */
static void
clip(void **state)
{
	(void)state;
	static const double x[] = {.5, -.5, 100, 0};
	double d2[16], w[4];

	measure(d2, x, 4, 1);
	assert_int_equal(select_clip(d2, 4, 1, 1, w, NULL), ERR_OK);
	assert_true(fabs(combine(w, x, 4) - 1.0 / 3) < 1e-12);
	assert_int_equal(select_clip(d2, 4, 1, 3, w, NULL), ERR_OK);
	assert_true(fabs(combine(w, x, 4)) <= 1 + 1e-9);
	/* Nothing to clip: one iteration gives the mean. */
	assert_int_equal(select_clip(d2, 4, 1e6, 1, w, NULL), ERR_OK);
	assert_true(fabs(combine(w, x, 4) - 100.0 / 3) < 1e-9);
	assert_int_equal(select_clip(d2, 4, 0, 1, w, NULL), ERR_INVALID);
}

static void
nearest(void **state)
{
	(void)state;
	double d2[25], mix[25];

	measure(d2, five, 5, 1);
	assert_int_equal(select_nearest(d2, 5, 2, mix), ERR_OK);
	assert_true(fabs(combine(mix, five, 5) - .1) < 1e-12);
	assert_true(fabs(combine(mix + 20, five, 5) - 10.5 / 3) < 1e-12);
	/* f = 0: every row is the mean. */
	assert_int_equal(select_nearest(d2, 5, 0, mix), ERR_OK);
	for (size_t i = 0; i < 25; i++)
		assert_true(mix[i] == .2);
	assert_int_equal(select_nearest(d2, 5, 5, mix), ERR_INVALID);
}

static void
buckets(void **state)
{
	(void)state;
	double mix[25];
	size_t rows;

	assert_int_equal(select_buckets(5, 2, 4, mix, &rows), ERR_OK);
	assert_int_equal(rows, 3);
	for (size_t i = 0; i < 5; i++) {
		size_t in = 0;
		for (size_t row = 0; row < 3; row++)
			in += mix[row * 5 + i] > 0;
		assert_int_equal(in, 1);
	}
	for (size_t row = 0; row < 3; row++) {
		double sum = 0;
		for (size_t i = 0; i < 5; i++)
			sum += mix[row * 5 + i];
		assert_true(sum == 1);
	}
	/* s = 1: the vectors themselves. */
	assert_int_equal(select_buckets(5, 1, 4, mix, &rows), ERR_OK);
	assert_int_equal(rows, 5);
	assert_int_equal(select_buckets(5, 0, 4, mix, &rows), ERR_INVALID);
}

static void
mixed(void **state)
{
	(void)state;
	double x[MOST * DIMS], d2[MOST * MOST], mix[MOST * MOST], y[MOST * DIMS] = {0};
	double got[MOST * MOST], want[MOST * MOST];
	struct prng r;
	size_t rows;

	prng_seed(&r, 5);
	for (size_t i = 0; i < MOST * DIMS; i++)
		x[i] = prng_double(&r);
	measure(d2, x, MOST, DIMS);
	for (int turn = 0; turn < 2; turn++) {
		rows = MOST;
		if (turn == 0)
			assert_int_equal(select_nearest(d2, MOST, 5, mix), ERR_OK);
		else
			assert_int_equal(select_buckets(MOST, 3, 1, mix, &rows), ERR_OK);
		memset(y, 0, sizeof(y));
		for (size_t i = 0; i < rows; i++)
			for (size_t j = 0; j < MOST; j++)
				for (size_t k = 0; k < DIMS; k++)
					y[i * DIMS + k] += mix[i * MOST + j] * x[j * DIMS + k];
		measure(want, y, rows, DIMS);
		assert_int_equal(select_mixed(d2, MOST, mix, rows, got, NULL), ERR_OK);
		for (size_t i = 0; i < rows * rows; i++)
			assert_true(fabs(got[i] - want[i]) < 1e-12);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(krum),
	    cmocka_unit_test(bulyan),
	    cmocka_unit_test(median),
	    cmocka_unit_test(median_leaves),
	    cmocka_unit_test(median_reference),
	    cmocka_unit_test(clip),
	    cmocka_unit_test(nearest),
	    cmocka_unit_test(buckets),
	    cmocka_unit_test(mixed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
