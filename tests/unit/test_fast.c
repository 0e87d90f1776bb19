/* stages: gcc clang address thread */
/* What is worked out "fast" (local.arithmetic), or without a word by networks of the oldest layers, is near what is exact, for shapes that
 * OpenBLAS takes and for others, and the same with any number of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "gemm_inside.h"
#include "net_trial.h"
#include "team.h"
#include "tensor.h"

#define BATCH 26
#ifdef __SANITIZE_THREAD__
#define MOST_THREADS 2
#else
#define MOST_THREADS 5
#endif
#define CROSS(layers) "{\"layers\": [" layers "], \"loss\": \"cross_entropy\"}"
#define HEAD "{\"type\": \"flatten\"}, {\"type\": \"linear\", \"out\": 5}"
#define CONV(out, more) "{\"type\": \"conv2d\", \"out\": " #out ", \"kernel\": " more "}, "
#define NORM "{\"type\": \"groupnorm\", \"groups\": 4}, "
#define RELU "{\"type\": \"relu\"}, "
#define EMBED "{\"type\": \"embedding\", \"vocabulary\": 30, \"out\": 64}, "
#define ATTEND(more) \
	CROSS(EMBED "{\"type\": \"attention\", \"heads\": 2" more \
		    "}, {\"type\": \"linear\", \"out\": 30}")

/* Sides on both sides of OpenBLAS's 24, sums on both sides of its 512. */
static const struct row {
	enum net_arithmetic arithmetic;
	const char *data, *model;
} cases[] = {
    {ARITHMETIC_FAST, "\"shape\": [9, 14, 13], \"classes\": 5",
	CROSS(CONV(48, "3, \"padding\": 1") NORM RELU CONV(64, "3, \"stride\": 2") HEAD)},
    {ARITHMETIC_FAST, "\"shape\": [24, 15, 31], \"classes\": 5",
	CROSS(CONV(24, "3, \"padding\": 1, \"groups\": 24") "{\"type\": \"batchnorm\"}, " CONV(
	    80, "1") NORM "{\"type\": \"global_avgpool\"}, " HEAD)},
    /* The way back through a point of more than 512 channels. */
    {ARITHMETIC_FAST, "\"shape\": [3, 9, 9], \"classes\": 5",
	CROSS(CONV(96, "3") NORM CONV(520, "1") NORM "{\"type\": \"global_avgpool\"}, " HEAD)},
    /* Small maps, examples side by side. */
    {ARITHMETIC_FAST, "\"shape\": [20, 5, 5], \"classes\": 5",
	CROSS(CONV(100, "3, \"padding\": 1") NORM CONV(40, "3") NORM CONV(60, "1") NORM HEAD)},
    {ARITHMETIC_FAST, "\"shape\": [300], \"classes\": 5",
	CROSS("{\"type\": \"linear\", \"out\": 400}, " RELU
	      "{\"type\": \"linear\", \"out\": 300}, " HEAD)},
    /* More steps than a block of attention has rows. */
    {ARITHMETIC_FAST, "\"window\": 150", ATTEND("")},
    {ARITHMETIC_FAST, "\"window\": 150", ATTEND(", \"causal\": true")},
    {ARITHMETIC_FAST, "\"window\": 150", ATTEND(", \"causal\": true, \"positions\": \"rotary\"")},
    {ARITHMETIC_FAST, "\"window\": 40",
	CROSS(EMBED "{\"type\": \"lstm\", \"out\": 48}, {\"type\": \"gru\", \"out\": 48}, "
		    "{\"type\": \"linear\", \"out\": 30}")},
    {ARITHMETIC_FAST, "\"window\": 3",
	CROSS(EMBED "{\"type\": \"gru\", \"out\": 520}, {\"type\": \"linear\", \"out\": 30}")},
    {ARITHMETIC_DEFAULT, "\"shape\": [9, 14, 13], \"classes\": 5",
	CROSS(CONV(48, "3, \"padding\": 1") RELU "{\"type\": \"maxpool2d\", \"kernel\": 2}, " CONV(
	    64, "3") RELU "{\"type\": \"flatten\"}, {\"type\": \"linear\", \"out\": 300}, " HEAD)},
    /* Convolutions alone, of a small map and of long rows: as they always were. */
    {ARITHMETIC_DEFAULT, "\"shape\": [48, 7, 7], \"classes\": 5", CROSS(CONV(64, "3") RELU HEAD)},
    {ARITHMETIC_DEFAULT, "\"shape\": [48, 6, 18], \"classes\": 5", CROSS(CONV(64, "3") RELU HEAD)},
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

struct how {
	enum net_arithmetic arithmetic;
	unsigned threads;
	bool recompute;
};

static float *
gradient_of(size_t i, const struct how *how, size_t *count)
{
	struct net_trial t;
	struct why why = {""};
	struct team *team;

	net_trial_begin(&t, BATCH, cases[i].data, cases[i].model);
	net_free(t.net);
	t.recipe.net.arithmetic = how->arithmetic;
	assert_int_equal(team_new(&team, how->threads), ERR_OK);
	const struct net_part whole = {.spec = &t.recipe.net,
	    .classes = t.recipe.data.class_count,
	    .last = t.recipe.net.layer_count,
	    .max_batch = BATCH,
	    .contexts = 1,
	    .train = true,
	    .recompute = how->recompute,
	    .team = team};
	if (net_new_part(&t.net, &whole, &why))
		fail_msg("%s", why.text);
	net_init(t.net, 5);
	*count = (size_t)net_tensors(t.net)->elements;
	float *gradient = calloc(*count, sizeof(float));
	assert_int_equal(net_gradient(t.net, &t.batch, gradient), ERR_OK);
	net_trial_end(&t);
	team_free(team);
	return gradient;
}

/* Near, and not simply the same, where something else should have worked it out. */
static void
near(void **state)
{
	bool fuses = gemm_kernels_of(GEMM_FUSED) != gemm_kernels_of(GEMM_ROUNDED);

	(void)state;
	if (MOST_THREADS == 2)
		skip(); /* nothing that the thread sanitizer could see */
	for (size_t i = 0; i < CASES; i++) {
		enum net_arithmetic own = cases[i].arithmetic;
		size_t n, other = 0;
		float *exact = gradient_of(i, &(struct how){ARITHMETIC_EXACT, 1, false}, &n);
		float *fast = gradient_of(i, &(struct how){own, 1, false}, &n);
		float largest = 0, apart = 0;
		for (size_t k = 0; k < n; k++) {
			largest = fmaxf(largest, fabsf(exact[k]));
			apart = fmaxf(apart, fabsf(exact[k] - fast[k]));
			other += exact[k] != fast[k];
		}
		print_message("case %zu: %zu of %zu differ, at most %g apart, of %g\n", i, other, n,
		    (double)apart, (double)largest);
		assert_true(largest > 0 && apart < 1e-5f * largest);
		assert_true(other > n / 4 || (own == ARITHMETIC_FAST && !fuses));
		free(exact);
		free(fast);
	}
}

/* Of one machine: OpenBLAS has other bits on another. */
static void
any_threads(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES; i++) {
		size_t n;
		float *one = gradient_of(i, &(struct how){cases[i].arithmetic, 1, false}, &n);
		for (unsigned threads = MOST_THREADS; threads > 1; threads--) {
			const struct how how = {cases[i].arithmetic, threads, threads % 2 == 1};
			float *some = gradient_of(i, &how, &n);
			assert_memory_equal(one, some, n * sizeof(float));
			free(some);
		}
		free(one);
	}
}

static void
take(const char *words)
{
	struct gemm_choice choice = gemm_choice_usual();

	assert_int_equal(gemm_choice_read(&choice, words, NULL), ERR_OK);
	gemm_choice_set(&choice);
}

/* Whatever was quickest on a machine: near, and the same with any number of threads. */
static void
any_kernels(void **state)
{
	static const char *const all[] = {
	    "rounded", "openblas", "rounded openblas", "slabs=openblas"};

	(void)state;
	for (size_t i = 0; i < CASES && cases[i].arithmetic == ARITHMETIC_FAST; i++) {
		size_t n;
		float *exact = gradient_of(i, &(struct how){ARITHMETIC_EXACT, 1, false}, &n);
		for (size_t k = 0; k < sizeof(all) / sizeof(*all); k++) {
			float largest = 0, apart = 0;
			take(all[k]);
			float *one = gradient_of(i, &(struct how){ARITHMETIC_FAST, 1, false}, &n);
			float *some =
			    gradient_of(i, &(struct how){ARITHMETIC_FAST, MOST_THREADS, true}, &n);
			for (size_t j = 0; j < n; j++) {
				largest = fmaxf(largest, fabsf(exact[j]));
				apart = fmaxf(apart, fabsf(exact[j] - one[j]));
			}
			assert_true(largest > 0 && apart < 1e-5f * largest);
			assert_memory_equal(one, some, n * sizeof(float));
			assert_true(k > 0 || memcmp(one, exact, n * sizeof(float)) == 0);
			free(one);
			free(some);
		}
		free(exact);
	}
	take("usual");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(near), cmocka_unit_test(any_threads), cmocka_unit_test(any_kernels)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
