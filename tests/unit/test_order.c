/* stages: gcc clang address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "order.h"
#include "prng.h"

static int
compare(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

/* The same by qsort, one coordinate at a time. */
static float
reference(const float *rows, size_t n, size_t stride, size_t at, size_t from, size_t to)
{
	float *x = malloc(n * sizeof(*x));
	double sum = 0;

	assert_non_null(x);
	for (size_t i = 0; i < n; i++)
		x[i] = rows[i * stride + at];
	qsort(x, n, sizeof(*x), compare);
	for (size_t i = from; i < to; i++)
		sum += (double)x[i];
	free(x);
	return (float)(sum / (double)(to - from));
}

static void
check(size_t n, size_t from, size_t to, size_t count, uint64_t seed, int levels)
{
	size_t stride = count + 3;
	float *rows = malloc(n * stride * sizeof(*rows)), *out = malloc(count * sizeof(*out));
	struct order *o;
	struct prng r;

	assert_true(rows && out);
	prng_seed(&r, seed);
	for (size_t i = 0; i < n * stride; i++)
		rows[i] =
		    levels ? (float)prng_below(&r, (uint64_t)levels) - 1 : prng_float(&r) - 0.5f;
	assert_int_equal(order_new(&o, n, from, to), ERR_OK);
	int32_t *scratch = malloc(order_scratch(o) * sizeof(*scratch));
	assert_non_null(scratch);
	order_mean(o, rows, stride, count, scratch, out);
	for (size_t i = 0; i < count; i++)
		assert_true(out[i] == reference(rows, n, stride, i, from, to));
	order_free(o);
	free(scratch);
	free(rows);
	free(out);
}

static void
medians(void **state)
{
	(void)state;
	for (size_t n = 1; n <= 130; n++) {
		check(n, (n - 1) / 2, n / 2 + 1, 70, n, 0);
		check(n, (n - 1) / 2, n / 2 + 1, 33, n + 1000, 3);
	}
	check(1000, 499, 501, 40, 5, 0);
	check(4096, 2047, 2049, 3, 5, 0);
}

static void
trimmed(void **state)
{
	(void)state;
	for (size_t n = 1; n <= 40; n++)
		for (size_t f = 0; 2 * f < n; f++)
			check(n, f, n - f, 35, n * 100 + f, f % 2 ? 4 : 0);
}

/* By the 0-1 principle a network sorts everything if it sorts all zeros and ones. */
static void
zeros_and_ones(void **state)
{
	(void)state;
	enum { N = 11 };
	static float rows[N << N], out[1 << N];
	int32_t scratch[2 * N * 64];

	for (size_t i = 0; i < 1 << N; i++)
		for (size_t k = 0; k < N; k++)
			rows[(k << N) + i] = (float)(i >> k & 1);
	for (size_t rank = 0; rank < N; rank++) {
		struct order *o;
		assert_int_equal(order_new(&o, N, rank, rank + 1), ERR_OK);
		assert_true(order_scratch(o) <= sizeof(scratch) / sizeof(*scratch));
		order_mean(o, rows, 1 << N, 1 << N, scratch, out);
		for (size_t i = 0; i < 1 << N; i++)
			assert_true(
			    out[i] == (float)(N - (size_t)__builtin_popcount((unsigned)i) <= rank));
		order_free(o);
	}
}

/* The `keep` values nearest to the median by sorting them by distance; no ties among random floats. */
static void
around(void **state)
{
	(void)state;
	enum { N = 11, COUNT = 300 };
	static float rows[N * COUNT], out[COUNT];
	struct order *o;
	struct prng r;

	prng_seed(&r, 3);
	for (size_t i = 0; i < N * COUNT; i++)
		rows[i] = prng_float(&r) * prng_float(&r) - 0.1f;
	assert_int_equal(order_new(&o, N, 0, N), ERR_OK);
	int32_t *scratch = malloc(order_scratch(o) * sizeof(*scratch));
	assert_non_null(scratch);
	for (size_t keep = 1; keep <= N; keep++) {
		order_around(o, rows, COUNT, COUNT, keep, scratch, out);
		for (size_t c = 0; c < COUNT; c++) {
			float x[N], best = 0;
			double least = 1e9;
			for (size_t i = 0; i < N; i++)
				x[i] = rows[i * COUNT + c];
			qsort(x, N, sizeof(*x), compare);
			for (size_t s = 0; s + keep <= N; s++) {
				double sum = 0, far = 0;
				for (size_t i = s; i < s + keep; i++) {
					double d = (double)x[i] - (double)x[N / 2];
					sum += (double)x[i];
					far = (d < 0 ? -d : d) > far ? (d < 0 ? -d : d) : far;
				}
				if (far < least) {
					least = far;
					best = (float)(sum / (double)keep);
				}
			}
			assert_true(out[c] == best);
		}
	}
	order_free(o);
	free(scratch);
}

static void
arguments(void **state)
{
	(void)state;
	struct order *o, *all;

	assert_int_equal(order_new(&o, 0, 0, 0), ERR_INVALID);
	assert_int_equal(order_new(&o, 3, 1, 1), ERR_INVALID);
	assert_int_equal(order_new(&o, 3, 1, 4), ERR_INVALID);
	assert_int_equal(order_new(&o, ORDER_MAX + 1, 0, 1), ERR_INVALID);
	/* Only what the median depends on is carried out. */
	assert_int_equal(order_new(&o, 100, 49, 51), ERR_OK);
	assert_int_equal(order_new(&all, 100, 0, 100), ERR_OK);
	assert_true(order_comparators(o) < order_comparators(all));
	order_free(o);
	order_free(all);
	order_free(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(medians),
	    cmocka_unit_test(trimmed),
	    cmocka_unit_test(zeros_and_ones),
	    cmocka_unit_test(around),
	    cmocka_unit_test(arguments),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
