/* stages: gcc clang address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "prng.h"
#include "server_opt.h"

static const struct server_opt *
sgd(void)
{
	const struct server_opt *opt = server_opt_find("sgd");

	assert_non_null(opt);
	assert_string_equal(opt->name, "sgd");
	return opt;
}

static void
unknown_names(void **state)
{
	(void)state;
	assert_null(server_opt_find(""));
	assert_null(server_opt_find("SGD"));
	assert_null(server_opt_find("sgdx"));
}

static void
state_only_with_momentum(void **state)
{
	struct server_opt_params p = {.rate = 1, .momentum = 0};
	(void)state;

	assert_int_equal(sgd()->state_vectors(&p), 0);
	p.momentum = 0.5f;
	assert_int_equal(sgd()->state_vectors(&p), 1);
}

/* Rate 1 without momentum is FedAvg: the weights become exactly w + update. */
static void
rate_one_adds_exactly(void **state)
{
	struct server_opt_params p = {.rate = 1, .momentum = 0};
	float w[997], update[997], want[997];
	struct prng r;
	(void)state;

	prng_seed(&r, 3);
	for (size_t i = 0; i < 997; i++) {
		w[i] = prng_float(&r) - 0.5f;
		update[i] = (prng_float(&r) - 0.5f) * 1e-3f;
		want[i] = w[i] + update[i];
	}
	assert_int_equal(sgd()->step(&p, w, update, NULL, 997), ERR_OK);
	assert_memory_equal(w, want, sizeof(w));
}

/* All numbers are exact in binary: m = 1, 1.5, 0.75 and w = 8.25, 8.625, 8.8125. */
static void
momentum_by_hand(void **state)
{
	struct server_opt_params p = {.rate = 0.25f, .momentum = 0.5f};
	const float update[] = {1, 1, 0}, want_m[] = {1, 1.5f, 0.75f},
		    want_w[] = {8.25f, 8.625f, 8.8125f};
	float w = 8, m = 0;
	(void)state;

	for (size_t round = 0; round < 3; round++) {
		assert_int_equal(sgd()->step(&p, &w, &update[round], &(float *){&m}, 1), ERR_OK);
		assert_true(m == want_m[round]);
		assert_true(w == want_w[round]);
	}
}

/* Each product and sum is rounded on its own: a fused multiply-add would give other bits here. With
 * a = 1 + 2^-23, a * a rounds to 1 + 2^-22; taking that away leaves 0, fused it would leave 2^-46. */
static void
products_are_rounded(void **state)
{
	const float a = 1 + 0x1p-23f;
	struct server_opt_params p = {.rate = a, .momentum = 0};
	float w = -(1 + 0x1p-22f), zero = 0, m = a;
	(void)state;

	assert_int_equal(sgd()->step(&p, &w, &a, NULL, 1), ERR_OK);
	assert_true(w == 0);

	const float b = 1 - 0x1p-24f, square = b * b, minus = -square;
	p = (struct server_opt_params){.rate = 1, .momentum = b};
	m = b;
	w = 0;
	assert_int_equal(sgd()->step(&p, &w, &minus, &(float *){&m}, 1), ERR_OK);
	assert_true(m == 0 && w == 0);
	assert_int_equal(sgd()->step(&p, &w, &zero, &(float *){&m}, 1), ERR_OK);
	assert_true(m == 0 && w == 0);
}

static void
ranges_do_not_matter(void **state)
{
	struct server_opt_params p = {.rate = 0.7f, .momentum = 0.9f};
	float w[2][1001], m[2][1001], update[1001];
	struct prng r;
	(void)state;

	prng_seed(&r, 11);
	for (size_t i = 0; i < 1001; i++) {
		w[0][i] = w[1][i] = prng_float(&r);
		m[0][i] = m[1][i] = prng_float(&r);
		update[i] = prng_float(&r) - 0.5f;
	}
	assert_int_equal(sgd()->step(&p, w[0], update, &(float *){m[0]}, 1001), ERR_OK);
	for (size_t at = 0; at < 1001;) {
		size_t n = 1 + prng_below(&r, 90);
		n = n < 1001 - at ? n : 1001 - at;
		assert_int_equal(
		    sgd()->step(&p, w[1] + at, update + at, &(float *){m[1] + at}, n), ERR_OK);
		at += n;
	}
	assert_memory_equal(w[0], w[1], sizeof(w[0]));
	assert_memory_equal(m[0], m[1], sizeof(m[0]));
}

/* theta = 1, delta = 0.1 twice, outer rate 0.7, momentum 0.9: 0.867, then 0.6773, for a delta that is subtracted. Computed. */
static void
nesterov(void **state)
{
	struct server_opt_params p = {.rate = 0.7f, .momentum = 0.9f, .nesterov = true};
	float w = 1, m = 0, update = -0.1f, plain = 1;
	(void)state;

	assert_int_equal(sgd()->step(&p, &w, &update, &(float *){&m}, 1), ERR_OK);
	assert_true(fabsf(w - 0.867f) < 1e-6f);
	assert_int_equal(sgd()->step(&p, &w, &update, &(float *){&m}, 1), ERR_OK);
	assert_true(fabsf(w - 0.6773f) < 1e-6f);
	/* Without momentum it is SGD, to the bit. */
	p.momentum = 0;
	w = 1;
	assert_int_equal(sgd()->step(&p, &w, &update, NULL, 1), ERR_OK);
	p.nesterov = false;
	assert_int_equal(sgd()->step(&p, &plain, &update, NULL, 1), ERR_OK);
	assert_true(w == plain);
}

/* One step from m = 0 and v = tau^2 = 1e-6 by 0.1: v and the step over the rate. Computed. */
static void
adaptive(void **state)
{
	static const struct {
		const char *name;
		float beta1;
		double v, step;
	} cases[] = {{"adam", 0.9f, 1.0099e-4, 0.905028}, {"yogi", 0.9f, 1.01e-4, 0.904988},
	    {"adagrad", 0, 0.010001, 0.990050}, {"adagrad", 0.9f, 0.010001, 0.0990050}};
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct server_opt *o = server_opt_find(cases[i].name);
		struct server_opt_params p = {
		    .rate = 0.5f, .beta1 = cases[i].beta1, .beta2 = 0.99f, .tau = 1e-3f};
		float w = 0, update = 0.1f, m = o->state_start(&p, 0), v = o->state_start(&p, 1);
		assert_int_equal(o->state_vectors(&p), 2);
		assert_true(m == 0 && fabsf(v - 1e-6f) < 1e-12f);
		assert_int_equal(o->step(&p, &w, &update, (float *[]){&m, &v}, 1), ERR_OK);
		assert_true(fabs((double)v / cases[i].v - 1) < 1e-5);
		assert_true(fabs((double)w / (0.5 * cases[i].step) - 1) < 1e-5);
		float huge = 1e30f;
		assert_int_equal(o->step(&p, &w, &huge, (float *[]){&m, &v}, 1), ERR_NUMERIC);
		p.tau = 0;
		assert_int_equal(o->step(&p, &w, &update, (float *[]){&m, &v}, 1), ERR_INVALID);
	}
	/* Yogi goes down as well as up, and stays where v is the square. */
	struct server_opt_params p = {.rate = 1, .beta1 = 0, .beta2 = 0.5f, .tau = 1};
	float w[3] = {0}, update[3] = {1, 2, 3}, m[3] = {0}, v[3] = {4, 4, 4};
	assert_int_equal(
	    server_opt_find("yogi")->step(&p, w, update, (float *[]){m, v}, 3), ERR_OK);
	assert_true(v[0] == 3.5f && v[1] == 4 && v[2] == 8.5f);
}

static void
not_finite_is_an_error(void **state)
{
	struct server_opt_params plain = {.rate = 1, .momentum = 0},
				 heavy = {.rate = 1e-30f, .momentum = 0.9f};
	float w, m;
	(void)state;

	const float bad[] = {NAN, INFINITY, -INFINITY};
	for (size_t i = 0; i < 3; i++) {
		w = 1;
		assert_int_equal(sgd()->step(&plain, &w, &bad[i], NULL, 1), ERR_NUMERIC);
		w = 1, m = 0;
		assert_int_equal(sgd()->step(&heavy, &w, &bad[i], &(float *){&m}, 1), ERR_NUMERIC);
	}
	float most = FLT_MAX;
	w = FLT_MAX;
	assert_int_equal(sgd()->step(&plain, &w, &most, NULL, 1), ERR_NUMERIC);
	/* Only the momentum overflows upward; the weight follows because rate * infinity is infinite. */
	w = 0, m = FLT_MAX;
	assert_int_equal(sgd()->step(&heavy, &w, &most, &(float *){&m}, 1), ERR_NUMERIC);
}

/* The end of a schedule: the weights stand still, the state goes on. */
static void
rate_zero(void **state)
{
	const struct server_opt_params end = {.momentum = 0.5f, .beta2 = 0.5f, .tau = 1};
	const float update = 2;
	float w = 3, m = 1, v = 4;
	(void)state;

	assert_int_equal(sgd()->step(&end, &w, &update, &(float *){&m}, 1), ERR_OK);
	assert_true(w == 3 && m == 2.5f);
	m = 0;
	assert_int_equal(
	    server_opt_find("adam")->step(&end, &w, &update, (float *[]){&m, &v}, 1), ERR_OK);
	assert_true(w == 3 && m == 2 && v == 4);
}

static void
params_out_of_range(void **state)
{
	const struct server_opt_params bad[] = {{.rate = -1}, {.rate = NAN},
	    {.rate = 1, .momentum = 1}, {.rate = 1, .momentum = -0.1f},
	    {.rate = 1, .momentum = NAN}};
	const float update = 1;
	float w = 1, m = 0;
	(void)state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(sgd()->step(&bad[i], &w, &update, &(float *){&m}, 1), ERR_INVALID);
	const struct server_opt_params heavy = {.rate = 1, .momentum = 0.5f};
	assert_int_equal(sgd()->step(&heavy, &w, &update, NULL, 1), ERR_INVALID);
	assert_true(w == 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(unknown_names),
	    cmocka_unit_test(state_only_with_momentum),
	    cmocka_unit_test(rate_one_adds_exactly),
	    cmocka_unit_test(momentum_by_hand),
	    cmocka_unit_test(products_are_rounded),
	    cmocka_unit_test(ranges_do_not_matter),
	    cmocka_unit_test(nesterov),
	    cmocka_unit_test(adaptive),
	    cmocka_unit_test(not_finite_is_an_error),
	    cmocka_unit_test(rate_zero),
	    cmocka_unit_test(params_out_of_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
