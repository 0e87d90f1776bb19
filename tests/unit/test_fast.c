/* What is worked out "fast" (local.arithmetic) is near what is exact, for shapes that OpenBLAS takes and for others, and the same with any number
 * of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "net_trial.h"
#include "team.h"

#define BATCH 6
#define CROSS(layers) "{\"layers\": [" layers "], \"loss\": \"cross_entropy\"}"
#define HEAD "{\"type\": \"flatten\"}, {\"type\": \"linear\", \"out\": 5}"
#define EMBED "{\"type\": \"embedding\", \"vocabulary\": 30, \"out\": 64}, "
#define ATTEND(more) \
	CROSS(EMBED "{\"type\": \"attention\", \"heads\": 2" more \
		    "}, {\"type\": \"linear\", \"out\": 30}")

static const struct {
	const char *data, *model;
} cases[] = {
    {"\"shape\": [9, 14, 13], \"classes\": 5",
	CROSS("{\"type\": \"conv2d\", \"out\": 48, \"kernel\": 3, \"padding\": 1}, {\"type\": "
	      "\"groupnorm\", \"groups\": 4}, "
	      "{\"type\": \"relu\"}, {\"type\": \"conv2d\", \"out\": 64, \"kernel\": 3, "
	      "\"stride\": 2}, " HEAD)},
    {"\"shape\": [24, 30, 31], \"classes\": 5",
	CROSS("{\"type\": \"conv2d\", \"out\": 24, \"kernel\": 3, \"padding\": 1, \"groups\": 24}, "
	      "{\"type\": \"batchnorm\"}, {\"type\": \"conv2d\", \"out\": 80, \"kernel\": 1}, "
	      "{\"type\": \"groupnorm\", \"groups\": 4}, {\"type\": \"global_avgpool\"}, " HEAD)},
    {"\"shape\": [300], \"classes\": 5",
	CROSS("{\"type\": \"linear\", \"out\": 400}, {\"type\": \"relu\"}, {\"type\": \"linear\", "
	      "\"out\": 300}, " HEAD)},
    /* More steps than a block of attention has rows. */
    {"\"window\": 150", ATTEND("")},
    {"\"window\": 150", ATTEND(", \"causal\": true")},
    {"\"window\": 150", ATTEND(", \"causal\": true, \"positions\": \"rotary\"")},
    {"\"window\": 40",
	CROSS(EMBED "{\"type\": \"lstm\", \"out\": 48}, {\"type\": \"gru\", \"out\": 48}, "
		    "{\"type\": \"linear\", \"out\": 30}")},
};

static float *
gradient_of(size_t i, enum net_arithmetic arithmetic, unsigned threads, size_t *count)
{
	struct net_trial t;
	struct why why = {""};

	net_trial_begin(&t, BATCH, cases[i].data, cases[i].model);
	net_free(t.net);
	t.recipe.net.arithmetic = arithmetic;
	struct team *team;
	assert_int_equal(team_new(&team, threads), ERR_OK);
	const struct net_part whole = {.spec = &t.recipe.net,
	    .classes = t.recipe.data.class_count,
	    .last = t.recipe.net.layer_count,
	    .max_batch = BATCH,
	    .contexts = 1,
	    .train = true,
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

static void
near(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t n;
		float *exact = gradient_of(i, ARITHMETIC_EXACT, 1, &n), largest = 0, apart = 0;
		float *fast = gradient_of(i, ARITHMETIC_FAST, 1, &n);
		for (size_t k = 0; k < n; k++) {
			largest = fmaxf(largest, fabsf(exact[k]));
			apart = fmaxf(apart, fabsf(exact[k] - fast[k]));
		}
		print_message(
		    "case %zu: at most %g apart, of %g\n", i, (double)apart, (double)largest);
		assert_true(largest > 0 && apart < 1e-5f * largest);
		free(exact);
		free(fast);
	}
}

/* Of one machine: OpenBLAS has other bits on another. */
static void
any_threads(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t n;
		float *one = gradient_of(i, ARITHMETIC_FAST, 1, &n);
		for (unsigned threads = 2; threads <= 5; threads++) {
			float *some = gradient_of(i, ARITHMETIC_FAST, threads, &n);
			assert_memory_equal(one, some, n * sizeof(float));
			free(some);
		}
		free(one);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(near), cmocka_unit_test(any_threads)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
