/* stages: gcc clang address */
/* Data sets that do not quite fit a loss, and what a network keeps of its sums: nothing beyond a buffer's end, no wrong gradient. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "counts.h"
#include "dataset.h"
#include "net_trial.h"
#include "tensor.h"
#include "train.h"

#define COUNT 64
#define AUTOENCODER \
	"{\"layers\": [{\"type\": \"linear\", \"out\": 4}], \"loss\": \"mse\", \"target\": " \
	"\"input\"}"

/* A network that is to give its own input looks at no label and no target of the set, also where its figures are counted. */
static void
only_the_input(void **state)
{
	static float x[COUNT * 4], targets[COUNT];
	static int32_t labels[COUNT];
	struct net_trial t;

	(void)state;
	for (size_t i = 0; i < COUNT * 4; i++)
		x[i] = (float)(i % 7);
	net_trial_begin(&t, 32, "\"shape\": [4]", AUTOENCODER);
	t.recipe.local.batch = 32;
	for (int with = 0; with < 2; with++) {
		const struct dataset d = {.count = COUNT,
		    .shape = {4, 1, 1},
		    .dims = 1,
		    .features = 4,
		    .floats = x,
		    .labels = with ? labels : NULL,
		    .targets = with ? NULL : targets,
		    .target_width = with ? 0 : 1};
		const struct figure_set wanted = {.regression = true};
		struct train_config c = {
		    .local = &t.recipe.local, .data = &t.recipe.data, .round = 1};
		struct train_result result;
		struct train_score score;
		assert_int_equal(train_run(stepper_net(t.net), &d, &c, &result, NULL), ERR_OK);
		assert_int_equal(counts_new(&c.counts, &wanted, 0, NULL), ERR_OK);
		assert_int_equal(
		    train_evaluate_while(stepper_net(t.net), &d, &c, &score, NULL), ERR_OK);
		assert_int_equal(c.counts->regression.values, COUNT * 4);
		assert_true(fabs(c.counts->regression.squares / (COUNT * 4) - score.loss) < 1e-6);
		counts_free(c.counts);
	}
	net_trial_end(&t);
}

/* The slope of a ReLU is by its sign, which a layer in its place must not turn. */
static void
signs(void **state)
{
	static const char *const models[] = {"{\"layers\": [{\"type\": \"linear\", \"out\": 1, "
					     "\"bias\": false}, {\"type\": \"relu\"}, "
					     "{\"type\": \"sigmoid\"}], \"loss\": \"mse\"}",
	    "{\"layers\": [{\"type\": \"linear\", \"out\": 1, \"bias\": false}, {\"type\": "
	    "\"relu\"}, "
	    "{\"type\": \"dropout\", \"rate\": 0}, {\"type\": \"flatten\"}, {\"type\": "
	    "\"sigmoid\"}], "
	    "\"loss\": \"mse\"}"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct net_trial t;
		float gradient = 7;
		net_trial_begin(&t, 1, "\"shape\": [1]", models[i]);
		net_params(t.net)[0] = -1;
		t.x[0] = 2;
		t.targets[0] = 1;
		assert_int_equal(net_gradient(t.net, &t.batch, &gradient), ERR_OK);
		assert_true(gradient == 0);
		net_trial_end(&t);
	}
}

/* No label that counts is no figure; a row that does not count still has to be finite. */
static void
nothing_counts(void **state)
{
	struct net_trial t;
	struct net_result result;
	struct train_score score;
	float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	int32_t labels[4] = {1, 1, 1, 1};
	const struct dataset d = {.count = 4,
	    .shape = {2, 1, 1},
	    .dims = 1,
	    .features = 2,
	    .floats = x,
	    .labels = labels,
	    .classes = 3};

	(void)state;
	net_trial_begin(&t, 4, "\"shape\": [2], \"classes\": 3",
	    "{\"layers\": [{\"type\": \"linear\", \"out\": 3}], \"loss\": \"cross_entropy\", "
	    "\"ignore_index\": 1}");
	assert_int_equal(
	    train_evaluate(stepper_net(t.net), &d, &t.recipe.data, &score, NULL), ERR_OK);
	assert_true(isnan(score.loss) && isnan(score.accuracy) && score.labels == 0);
	assert_false(train_counts(t.net, &d));
	x[3] = NAN;
	const struct net_batch batch = {.x = x, .labels = labels, .n = 4};
	const struct net_update sgd = {.rate = 0.1f};
	float before[9];
	memcpy(before, net_params(t.net), sizeof(before));
	assert_int_equal(net_step(t.net, &batch, &sgd, &result), ERR_NUMERIC);
	assert_memory_equal(before, net_params(t.net), sizeof(before));
	net_trial_end(&t);
}

/* A model that does not move has the figures of an evaluation in training, too: small last batches, labels that are ignored and weights of
 * classes divide nothing by another number than what counts. */
static void
figures_of_training(void **state)
{
	static const char *const keys[] = {
	    "", ", \"ignore_index\": 1", ", \"class_weights\": [1, 0.25, 3]"};
	static float x[21 * 4];
	int32_t labels[21];
	const struct dataset d = {.count = 21,
	    .shape = {4, 1, 1},
	    .dims = 1,
	    .features = 4,
	    .floats = x,
	    .labels = labels,
	    .classes = 3};

	(void)state;
	for (size_t i = 0; i < 21 * 4; i++)
		x[i] = (float)(i % 5) - 2;
	for (int i = 0; i < 21; i++)
		labels[i] = i < 10 ? 1 : i % 3;
	for (size_t i = 0; i < 9; i++) {
		char model[160];
		struct net_trial t;
		struct train_result r;
		struct train_score score;
		snprintf(model, sizeof(model),
		    "{\"layers\": [{\"type\": \"linear\", \"out\": 3}], \"loss\": "
		    "\"cross_entropy\"%s}",
		    keys[i / 3]);
		net_trial_begin(&t, 20, "\"shape\": [4], \"classes\": 3", model);
		struct local_spec *local = &t.recipe.local;
		*local = (struct local_spec){.amount = 2,
		    .batch = i % 3 ? 10 : 20,
		    .accumulate = i % 3 == 1 ? 2 : 1,
		    .micro_batch = i % 3 == 2 ? 4 : 0};
		const struct train_config c = {
		    .local = local, .data = &t.recipe.data, .round = 1, .seed = 9};
		assert_int_equal(train_run(stepper_net(t.net), &d, &c, &r, NULL), ERR_OK);
		assert_int_equal(
		    train_evaluate(stepper_net(t.net), &d, &t.recipe.data, &score, NULL), ERR_OK);
		assert_true(r.labels == 2 * score.labels && r.right == 2 * score.right);
		assert_true(fabs(r.loss_count - 2 * score.weight) < 1e-9);
		assert_true(fabs(r.loss - score.loss) < 1e-6);
		assert_true(fabs(r.accuracy - score.accuracy) < 1e-12);
		net_trial_end(&t);
	}
}

/* Held, as frozen tensors are, its statistics do not move either. */
static void
held_statistics(void **state)
{
	struct net_trial t;
	struct net_result result;
	const struct net_update sgd = {.rate = 0.1f};
	float before[8];

	(void)state;
	const struct tensor_rule all = {"*", TENSOR_FROZEN};
	net_trial_begin(&t, 3, "\"shape\": [2]",
	    "{\"layers\": [{\"type\": \"batchnorm\"}], \"loss\": \"mse\"}");
	net_trial_freeze(&t, &all, 1);
	memcpy(before, net_params(t.net), sizeof(before));
	assert_int_equal(net_step(t.net, &t.batch, &sgd, &result), ERR_OK);
	assert_memory_equal(before, net_params(t.net), sizeof(before));
	net_trial_end(&t);
}

/* A batch in pieces is as many batches of their size in one step, to the bit. */
static void
micro_batches(void **state)
{
	static float x[COUNT * 4];
	const struct dataset d = {
	    .count = 50, .shape = {4, 1, 1}, .dims = 1, .features = 4, .floats = x};
	struct net_trial t[2];
	uint64_t bytes[2];

	(void)state;
	for (size_t i = 0; i < COUNT * 4; i++)
		x[i] = (float)(i % 5);
	for (int cut = 0; cut < 2; cut++) {
		net_trial_begin(&t[cut], 20, "\"shape\": [4]", AUTOENCODER);
		struct local_spec *local = &t[cut].recipe.local;
		const struct train_config c = {
		    .local = local, .data = &t[cut].recipe.data, .round = 1, .seed = 9};
		struct train_result result;
		local->batch = cut ? 20 : 4;
		local->accumulate = cut ? 1 : 5;
		local->micro_batch = cut ? 4 : 0;
		assert_int_equal(train_run(stepper_net(t[cut].net), &d, &c, &result, NULL), ERR_OK);
		assert_int_equal(result.steps, 3);
		assert_int_equal(train_bytes(t[cut].net, &c, &d, &bytes[cut], NULL), ERR_OK);
	}
	assert_memory_equal(
	    net_params(t[0].net), net_params(t[1].net), net_tensors(t[0].net)->bytes);
	assert_int_equal(bytes[0], bytes[1]);
	net_trial_end(&t[0]);
	net_trial_end(&t[1]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(only_the_input),
	    cmocka_unit_test(signs),
	    cmocka_unit_test(nothing_counts),
	    cmocka_unit_test(figures_of_training),
	    cmocka_unit_test(held_statistics),
	    cmocka_unit_test(micro_batches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
