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

#include "distance.h"
#include "prng.h"

static void
draw(float *x, size_t n, uint64_t seed, float scale, float offset)
{
	struct prng r;

	prng_seed(&r, seed);
	for (size_t i = 0; i < n; i++)
		x[i] = offset + scale * (prng_float(&r) - 0.5f);
}

static double
reference(const float *a, const float *b, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
	return sum;
}

static void
check(size_t n, size_t count, float scale, float offset)
{
	size_t stride = count + 5;
	float *rows = malloc(n * stride * sizeof(*rows));
	double *d2 = calloc(n * n, sizeof(*d2));

	assert_true(rows && d2);
	draw(rows, n * stride, n + count, scale, offset);
	distance_add(d2, rows, n, stride, count);
	distance_mirror(d2, n);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			double want = reference(rows + i * stride, rows + j * stride, count);
			assert_true(fabs(d2[i * n + j] - want) <= 1e-6 * want);
			assert_true(d2[i * n + j] == d2[j * n + i]);
		}
	free(rows);
	free(d2);
}

static void
shapes(void **state)
{
	(void)state;
	for (size_t n = 1; n <= 13; n++)
		for (size_t count = 0; count <= 70; count += 7)
			check(n, count, 1, 0);
	check(9, 5000, 1e-3f, 0);
	check(33, 1025, 1e-12f, 0);
	check(5, 2048, 1e15f, 0);
}

/* Vectors that differ in their last digits only: |a|^2 + |b|^2 - 2ab in f32 would be all noise. */
static void
close_vectors(void **state)
{
	(void)state;
	check(12, 3000, 1e-4f, 1);
	check(12, 3000, 1e-3f, 1000);
}

static void
cuts(void **state)
{
	(void)state;
	enum { N = 7, COUNT = 3 * DISTANCE_RUN + 77 };
	static float rows[N * COUNT];
	double whole[N * N] = {0}, cut[N * N] = {0};

	draw(rows, N * COUNT, 3, 1, 0.2f);
	distance_add(whole, rows, N, COUNT, COUNT);
	distance_add(cut, rows, N, COUNT, DISTANCE_RUN);
	distance_add(cut, rows + DISTANCE_RUN, N, COUNT, 2 * DISTANCE_RUN);
	distance_add(cut, rows + (size_t)3 * DISTANCE_RUN, N, COUNT, 77);
	assert_memory_equal(whole, cut, sizeof(whole));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(shapes),
	    cmocka_unit_test(close_vectors),
	    cmocka_unit_test(cuts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
