/* stages: gcc clang address */
/* What comes into a network from outside: words beyond its vocabulary, and values that are no numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "net_trial.h"

#define BATCH 3
#define FLAT "\"shape\": [6], \"classes\": 3"
#define PLANES "\"shape\": [4, 4, 6], \"classes\": 3"
#define SERIES "\"shape\": [5, 7], \"classes\": 3"
#define WORDS "\"window\": 5"
#define CLOSE "{\"type\": \"flatten\"}, {\"type\": \"linear\", \"out\": 3}"
#define CLASSES "\"loss\": \"cross_entropy\""

static void
tokens_are_checked(void **state)
{
	static const float wrong[] = {-1, 9, 0.5f, NAN, INFINITY};
	struct net_trial t;
	struct net_result result;

	(void)state;
	net_trial_begin(&t, BATCH, WORDS,
	    "{\"layers\": [{\"type\": \"embedding\", \"vocabulary\": 9, \"out\": 3}, {\"type\": "
	    "\"linear\", "
	    "\"out\": 9}], " CLASSES "}");
	assert_int_equal(net_eval(t.net, &t.batch, &result), ERR_OK);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		float old = t.x[7];
		t.x[7] = wrong[i];
		assert_int_equal(net_eval(t.net, &t.batch, &result), ERR_INVALID);
		t.x[7] = old;
	}
	net_trial_end(&t);
}

/* A value that is no number, wherever it stands, is seen in the loss: nothing takes a largest past it. */
static void
no_number_is_hidden(void **state)
{
	static const char *const layers[][2] = {
	    {SERIES, "\"pool_steps\", \"by\": \"max\""},
	    {SERIES, "\"pool_steps\", \"by\": \"mean\""},
	    {PLANES, "\"maxpool2d\", \"kernel\": 2"},
	    {FLAT, "\"relu\""},
	    {FLAT, "\"leaky_relu\""},
	    {FLAT, "\"elu\""},
	    {FLAT, "\"gelu\""},
	    {FLAT, "\"silu\""},
	    {FLAT, "\"sigmoid\""},
	    {FLAT, "\"tanh\""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
		struct net_trial t;
		struct net_result result;
		char model[512];
		snprintf(model, sizeof(model), "{\"layers\": [{\"type\": %s}, %s", layers[i][1],
		    CLOSE "], " CLASSES "}");
		net_trial_begin(&t, BATCH, layers[i][0], model);
		for (size_t k = 0; k < net_inputs(t.net) * BATCH; k++) {
			float old = t.x[k];
			t.x[k] = NAN;
			if (net_eval(t.net, &t.batch, &result) != ERR_NUMERIC)
				fail_msg("%s hides value %zu", model, k);
			t.x[k] = old;
		}
		net_trial_end(&t);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(tokens_are_checked),
	    cmocka_unit_test(no_number_is_hidden),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
