/* What is worked out "fast" (local.arithmetic) is near what is exact, for shapes that OpenBLAS takes and for others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "net_trial.h"

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
gradient_of(size_t i, enum net_arithmetic arithmetic, size_t *count)
{
	struct net_trial t;
	struct why why = {""};

	net_trial_begin(&t, BATCH, cases[i].data, cases[i].model);
	net_free(t.net);
	t.recipe.net.arithmetic = arithmetic;
	if (net_new(&t.net, &t.recipe.net, t.recipe.data.class_count, BATCH, true, 0, &why))
		fail_msg("%s", why.text);
	net_init(t.net, 5);
	*count = (size_t)net_tensors(t.net)->elements;
	float *gradient = calloc(*count, sizeof(float));
	assert_int_equal(net_gradient(t.net, &t.batch, gradient), ERR_OK);
	net_trial_end(&t);
	return gradient;
}

static void
near(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t n;
		float *exact = gradient_of(i, ARITHMETIC_EXACT, &n), largest = 0, apart = 0;
		float *fast = gradient_of(i, ARITHMETIC_FAST, &n);
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

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(near)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
