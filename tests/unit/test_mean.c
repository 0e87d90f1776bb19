/* stages: gcc clang address thread */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mean.h"
#include "prng.h"

/* Deltas in memory, with a fault that can be placed on one delta and element. */
struct source {
	const float *data;
	size_t elements;
	size_t fail_delta;
	uint64_t fail_element;
	enum err fail_with;
};

static enum err
read_tile(void *context, size_t delta, uint64_t first, size_t count, float *out)
{
	const struct source *s = context;

	if (count == 0 || count > MEAN_TILE || first + count > s->elements)
		return ERR_STATE;
	if (s->fail_with && delta == s->fail_delta && s->fail_element >= first &&
	    s->fail_element < first + count)
		return s->fail_with;
	memcpy(out, s->data + delta * s->elements + first, count * sizeof(*out));
	return ERR_OK;
}

static enum err
fold_range(struct source *s, const double *weights, size_t deltas, uint64_t first, size_t count,
    float *out)
{
	struct mean_input in = {read_tile, s, deltas, weights};

	return mean_fold(&in, first, count, out);
}

static enum err
fold(const float *data, size_t elements, const double *weights, size_t deltas, float *out)
{
	struct source s = {.data = data, .elements = elements};

	return fold_range(&s, weights, deltas, 0, elements, out);
}

static uint64_t
seed(void)
{
	const char *given = getenv("SEED");
	uint64_t s = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);

	print_message("SEED=%llu\n", (unsigned long long)s);
	return s;
}

static void
fill(struct prng *r, float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		x[i] = (prng_float(r) - 0.5f) * ldexpf(1, (int)prng_below(r, 40) - 20);
}

/* (1*1 + 3*5)/4 = 4, (1*-2 + 3*2)/4 = 1, (0.5 + 0)/4 = 0.125; then a third delta of weight 4 and value 8. */
static void
by_hand(void **state)
{
	const float two[] = {1, -2, 0.5f, 5, 2, 0}, three[] = {1, -2, 0.5f, 5, 2, 0, 8, 8, 8};
	const double weights[] = {1, 3, 4};
	float out[3];
	(void)state;

	assert_int_equal(fold(two, 3, weights, 2, out), ERR_OK);
	assert_true(out[0] == 4 && out[1] == 1 && out[2] == 0.125f);
	assert_int_equal(fold(three, 3, weights, 3, out), ERR_OK);
	assert_true(out[0] == 6 && out[1] == 4.5f && out[2] == 4.0625f);
}

/* Summed in f32, 2^24 + 1 would be 2^24 and the mean of {2^24, 1, -2^24} zero. */
static void
accumulates_in_double(void **state)
{
	const float x[] = {0x1p24f, 1, -0x1p24f};
	const double weights[] = {1, 1, 1};
	float out;
	(void)state;

	assert_int_equal(fold(x, 1, weights, 3, &out), ERR_OK);
	assert_true(out == 1.0f / 3);
}

static void
one_delta_returns_itself(void **state)
{
	const double weights[] = {1, 3, 600, 0.1, 1e-6, 18446744073709551615.0, 0x1p-64};
	float x[4096], out[4096];
	struct prng r;
	(void)state;

	prng_seed(&r, seed());
	for (size_t i = 0; i < 4096; i++) {
		uint32_t bits;
		do
			bits = (uint32_t)prng_u64(&r);
		while ((bits & 0x7f800000u) == 0x7f800000u);
		memcpy(&x[i], &bits, sizeof(bits));
	}
	x[0] = FLT_MAX, x[1] = -FLT_MAX, x[2] = -0.0f, x[3] = 1e-45f, x[4] = FLT_MIN;
	for (size_t k = 0; k < sizeof(weights) / sizeof(weights[0]); k++) {
		memset(out, 1, sizeof(out));
		assert_int_equal(fold(x, 4096, &weights[k], 1, out), ERR_OK);
		assert_memory_equal(out, x, sizeof(out));
	}
}

/* Against the plain definition, element by element, for every number of deltas around the group size. */
static void
matches_the_definition(void **state)
{
	enum { N = 301, D = 13 };
	float *x = test_malloc(sizeof(float) * N * D), out[N];
	double weights[D];
	struct prng r;
	(void)state;

	prng_seed(&r, seed());
	fill(&r, x, N * D);
	for (size_t d = 0; d < D; d++)
		weights[d] = (double)prng_below(&r, 1000) + (d == 0);
	for (size_t deltas = 1; deltas <= D; deltas++) {
		double total = 0;
		for (size_t d = 0; d < deltas; d++)
			total += weights[d];
		assert_int_equal(fold(x, N, weights, deltas, out), ERR_OK);
		for (size_t i = 0; i < N; i++) {
			double sum = weights[0] * (double)x[i];
			for (size_t d = 1; d < deltas; d++)
				sum += weights[d] * (double)x[d * N + i];
			assert_true(out[i] == (float)(sum / total));
		}
	}
	test_free(x);
}

/* Where every product and sum is exact, the order of the deltas cannot matter either. (Callers always give
 * device-id order; this shows that arrival order has nowhere to hide.) */
static void
order_of_exact_sums(void **state)
{
	enum { N = 500, D = 9 };
	float x[D][N], shuffled[D][N], want[N], got[N];
	double weights[D], shuffled_weights[D];
	uint32_t order[D];
	struct prng r;
	(void)state;

	prng_seed(&r, seed());
	for (uint32_t d = 0; d < D; d++) {
		order[d] = d;
		weights[d] = (double)(1 + prng_below(&r, 600));
		for (size_t i = 0; i < N; i++)
			x[d][i] = (float)((int)prng_below(&r, 20001) - 10000) * 0x1p-10f;
	}
	assert_int_equal(fold(x[0], N, weights, D, want), ERR_OK);
	for (int turn = 0; turn < 20; turn++) {
		prng_shuffle(&r, order, D);
		for (size_t d = 0; d < D; d++) {
			memcpy(shuffled[d], x[order[d]], sizeof(x[0]));
			shuffled_weights[d] = weights[order[d]];
		}
		assert_int_equal(fold(shuffled[0], N, shuffled_weights, D, got), ERR_OK);
		assert_memory_equal(got, want, sizeof(got));
	}
}

struct cut {
	struct source *source;
	const double *weights;
	size_t deltas;
	uint64_t first;
	size_t count;
	float *out;
	enum err result;
};

static void *
fold_cut(void *arg)
{
	struct cut *c = arg;

	c->result =
	    fold_range(c->source, c->weights, c->deltas, c->first, c->count, c->out + c->first);
	return NULL;
}

/* The element range cut anywhere, each piece on a thread of its own: always the same bits. */
static void
cuts_and_threads(void **state)
{
	enum { N = 3 * MEAN_TILE + 77, D = 6, MOST = 12 };
	float *x = test_malloc(sizeof(float) * N * D);
	float *want = test_malloc(sizeof(float) * N), *got = test_malloc(sizeof(float) * N);
	const double weights[D] = {600, 1, 37.5, 599, 0.1, 3};
	struct source s = {.data = x, .elements = N};
	struct prng r;
	(void)state;

	prng_seed(&r, seed());
	fill(&r, x, N * D);
	assert_int_equal(fold(x, N, weights, D, want), ERR_OK);
	for (int turn = 0; turn < 12; turn++) {
		struct cut cut[MOST];
		pthread_t thread[MOST];
		size_t pieces = 0;
		memset(got, 0, sizeof(float) * N);
		for (size_t at = 0; at < N; pieces++) {
			size_t n = pieces == MOST - 1 ? N - at : 1 + prng_below(&r, N / 4);
			n = n < N - at ? n : N - at;
			cut[pieces] = (struct cut){&s, weights, D, at, n, got, ERR_STATE};
			at += n;
		}
		for (size_t i = pieces; i-- > 0;)
			assert_int_equal(pthread_create(&thread[i], NULL, fold_cut, &cut[i]), 0);
		for (size_t i = 0; i < pieces; i++) {
			pthread_join(thread[i], NULL);
			assert_int_equal(cut[i].result, ERR_OK);
		}
		assert_memory_equal(got, want, sizeof(float) * N);
	}
	test_free(x);
	test_free(want);
	test_free(got);
}

/* The largest floats stay themselves; a bad value anywhere, even of weight 0, fails the fold. */
static void
not_finite(void **state)
{
	enum { N = MEAN_TILE + 5, D = 5 };
	const float bad[] = {NAN, INFINITY, -INFINITY};
	const double weights[D] = {1, 2, 0, 4, 5};
	float *x = test_calloc(N * D, sizeof(float)), *out = test_malloc(sizeof(float) * N);
	struct prng r;
	(void)state;

	for (size_t i = 0; i < N * D; i++)
		x[i] = FLT_MAX;
	assert_int_equal(fold(x, N, weights, D, out), ERR_OK);
	for (size_t i = 0; i < N; i++)
		assert_true(out[i] == FLT_MAX);
	prng_seed(&r, seed());
	for (size_t turn = 0; turn < 30; turn++) {
		size_t at = prng_below(&r, N * D);
		x[at] = bad[turn % 3];
		assert_int_equal(fold(x, N, weights, D, out), ERR_NUMERIC);
		x[at] = 0;
	}
	x[3] = INFINITY, x[N + 3] = -INFINITY;
	assert_int_equal(fold(x, N, weights, D, out), ERR_NUMERIC);
	test_free(x);
	test_free(out);
}

static void
bad_weights(void **state)
{
	const float x[] = {1, 2};
	const double bad[][2] = {
	    {0, 0}, {-1, 2}, {2, -1}, {NAN, 1}, {1, NAN}, {INFINITY, 1}, {DBL_MAX, DBL_MAX}};
	const double zero_first[] = {0, 5};
	float out;
	(void)state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(fold(x, 1, bad[i], 2, &out), ERR_INVALID);
	assert_int_equal(fold(x, 1, zero_first, 2, &out), ERR_OK);
	assert_true(out == 2);
}

static void
read_errors_propagate(void **state)
{
	enum { N = 2 * MEAN_TILE + 9, D = 6 };
	const double weights[D] = {1, 1, 1, 1, 1, 1};
	float *x = test_calloc(N * D, sizeof(float)), *out = test_malloc(sizeof(float) * N);
	struct source s = {.data = x, .elements = N};
	(void)state;

	for (size_t d = 0; d < D; d++) {
		s.fail_delta = d;
		s.fail_element = d % 2 ? N - 1 : MEAN_TILE;
		s.fail_with = ERR_CORRUPT;
		assert_int_equal(fold_range(&s, weights, D, 0, N, out), ERR_CORRUPT);
		s.fail_with = ERR_IO;
		assert_int_equal(fold_range(&s, weights, D, 0, N, out), ERR_IO);
		/* A range that does not touch the fault does not meet it. */
		assert_int_equal(fold_range(&s, weights, D, 0, MEAN_TILE, out), ERR_OK);
	}
	assert_int_equal(fold_range(&s, weights, D, 0, 0, out), ERR_OK);
	test_free(x);
	test_free(out);
}

/* Two devices minimise a/2 (w - b)^2 by `steps` of gradient descent; returns where FedAvg with equal weights
 * settles. The figures of the test below are Sum p(1-rho)b / Sum p(1-rho) with rho = (1 - rate a)^steps. */
static double
quadratic_bench(double rate, int steps0, int steps1)
{
	const double a[] = {1, 3}, b[] = {0, 1}, weights[] = {600, 600};
	const int steps[] = {steps0, steps1};
	float model = 5;

	for (int round = 0; round < 20000; round++) {
		float delta[2], update;
		for (int i = 0; i < 2; i++) {
			double w = (double)model;
			for (int k = 0; k < steps[i]; k++)
				w -= rate * a[i] * (w - b[i]);
			delta[i] = (float)(w - (double)model);
		}
		assert_int_equal(fold(delta, 1, weights, 2, &update), ERR_OK);
		model += update;
	}
	return (double)model;
}

static void
quadratic_fixed_points(void **state)
{
	(void)state;
	assert_true(fabs(quadratic_bench(0.1, 1, 10) - 0.906695) < 2e-6);
	/* With a small rate the last moves are below half an ulp of the f32 model and it stops early. */
	assert_true(fabs(quadratic_bench(0.001, 1, 10) - 0.967318) < 1e-5);
	assert_true(fabs(quadratic_bench(0.1, 5, 5) - 0.670133) < 2e-6);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(by_hand),
	    cmocka_unit_test(accumulates_in_double),
	    cmocka_unit_test(one_delta_returns_itself),
	    cmocka_unit_test(matches_the_definition),
	    cmocka_unit_test(order_of_exact_sums),
	    cmocka_unit_test(cuts_and_threads),
	    cmocka_unit_test(not_finite),
	    cmocka_unit_test(bad_weights),
	    cmocka_unit_test(read_errors_propagate),
	    cmocka_unit_test(quadratic_fixed_points),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
