/* stages: gcc clang address */
/* Layers of newer networks: gradients against central differences, training and evaluation, one part and the whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "codec.h"
#include "draw.h"
#include "net_trial.h"
#include "tensor.h"

#define BATCH 3
#define STEP 2e-3f

/* Its second matrices begin as zeros, and the first ones have no gradient then. */
static void
open_lora(struct net *net)
{
	const struct tensor_table *t = net_tensors(net);
	struct prng r;

	prng_seed(&r, 9);
	for (size_t k = 0; k < t->count; k++)
		for (size_t i = 0; strstr(t->items[k].name, "lora_B") && i < t->items[k].elements;
		     i++)
			net_params(net)[t->items[k].begin / sizeof(float) + i] =
			    2 * prng_float(&r) - 1;
}

/* Steps of two parts: so a gradient may be collected, and the loss of a pass in training be seen. */
static void
begin(struct net_trial *t, const char *shape, const char *model)
{
	const struct net_update how = {.rate = 0.1f, .parts = 2};

	net_trial_begin(t, BATCH, shape, model);
	open_lora(t->net);
	assert_int_equal(net_prepare(t->net, &how, NULL), ERR_OK);
}

/* Of a pass in training: norms use the batch's own statistics. */
static double
mean_loss(struct net_trial *t)
{
	struct net_result result;

	assert_int_equal(net_add(t->net, &t->batch, 1, &result), ERR_OK);
	return result.loss / result.weight;
}

static double
slope_at(struct net_trial *t, float *w)
{
	float old = *w;

	*w = old + STEP;
	double after = mean_loss(t), up = (double)*w;
	*w = old - STEP;
	double slope = (after - mean_loss(t)) / (up - (double)*w);
	*w = old;
	return slope;
}

/* Statistics have no gradient. */
static bool
counts(const struct tensor *t)
{
	return strstr(t->name, ".running_") != NULL;
}

/* draw: of dropout; NULL: there is none. */
static void
check_drawn(const char *shape, const char *model, const struct draw *draw)
{
	struct net_trial t;
	double top = 0;

	begin(&t, shape, model);
	t.batch.draw = draw;
	const struct tensor_table *table = net_tensors(t.net);
	float *gradient = calloc(table->elements, sizeof(float));
	assert_int_equal(net_gradient(t.net, &t.batch, gradient), ERR_OK);
	for (size_t i = 0; i < table->elements; i++)
		top = fmax(top, fabs((double)gradient[i]));
	assert_true(top > 1e-3);
	for (size_t k = 0; k < table->count; k++)
		for (size_t i = 0; i < table->items[k].elements && !counts(&table->items[k]); i++) {
			size_t at = table->items[k].begin / sizeof(float) + i;
			double slope = slope_at(&t, net_params(t.net) + at);
			if (!(fabs(slope - (double)gradient[at]) <= 4e-4 + 8e-3 * top))
				fail_msg("%s\n%s[%zu]: gradient %g, difference %g", model,
				    table->items[k].name, i, (double)gradient[at], slope);
		}
	free(gradient);
	net_trial_end(&t);
}

static void
check(const char *shape, const char *model)
{
	check_drawn(shape, model, NULL);
}

/* Layers behind a linear or convolution, so that what goes back through them is checked as well. */
#define FLAT "\"shape\": [6]"
#define PLANES "\"shape\": [4, 5, 6], \"classes\": 3"
#define SERIES "\"shape\": [5, 7], \"classes\": 3"
#define WORDS "\"window\": 5"
#define CONV "{\"type\": \"conv2d\", \"out\": 4, \"kernel\": 3, \"padding\": 1}"
#define CLOSE "{\"type\": \"flatten\"}, {\"type\": \"linear\", \"out\": 3}"
#define CLASSES "\"loss\": \"cross_entropy\""

static void
activations(void **state)
{
	static const char *const types[] = {"{\"type\": \"relu6\"}", "{\"type\": \"sigmoid\"}",
	    "{\"type\": \"tanh\"}", "{\"type\": \"gelu\"}",
	    "{\"type\": \"gelu\", \"approximate\": \"tanh\"}", "{\"type\": \"silu\"}",
	    "{\"type\": \"hardswish\"}", "{\"type\": \"leaky_relu\", \"slope\": 0.3}",
	    "{\"type\": \"scale\", \"by\": -1.5}", "{\"type\": \"elu\"}",
	    "{\"type\": \"elu\", \"alpha\": 2}"};
	char model[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		snprintf(model, sizeof(model),
		    "{\"layers\": [{\"type\": \"linear\", \"out\": 7}, %s, {\"type\": \"dropout\", "
		    "\"rate\": 0}, {\"type\": \"linear\", \"out\": 3}], \"loss\": \"mse\"}",
		    types[i]);
		check(FLAT, model);
	}
}

static void
norms_of_planes(void **state)
{
	static const char *const types[] = {"{\"type\": \"groupnorm\", \"groups\": 2}",
	    "{\"type\": \"groupnorm\", \"groups\": 4, \"affine\": false}",
	    "{\"type\": \"batchnorm\"}", "{\"type\": \"batchnorm\", \"affine\": false}"};
	char model[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		snprintf(model, sizeof(model),
		    "{\"layers\": [" CONV ", %s, {\"type\": \"tanh\"}, " CLOSE "], " CLASSES "}",
		    types[i]);
		check(PLANES, model);
	}
}

static void
norms_of_rows(void **state)
{
	static const char *const types[] = {"layernorm", "rmsnorm", "batchnorm"};
	char model[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		snprintf(model, sizeof(model),
		    "{\"layers\": [{\"type\": \"linear\", \"out\": 7}, {\"type\": \"%s\"}, "
		    "{\"type\": \"tanh\"}, {\"type\": \"linear\", \"out\": 3}], \"loss\": \"mse\"}",
		    types[i]);
		check(FLAT, model);
		snprintf(model, sizeof(model),
		    "{\"layers\": [{\"type\": \"linear\", \"out\": 17}, {\"type\": \"%s\"}, "
		    "{\"type\": \"tanh\"}, " CLOSE "], " CLASSES "}",
		    types[i]);
		check(SERIES, model);
	}
}

static void
convolutions(void **state)
{
	(void)state;
	check(PLANES,
	    "{\"layers\": [" CONV
	    ", {\"type\": \"conv2d\", \"out\": 4, \"kernel\": 3, \"padding\": 1, "
	    "\"groups\": 4}, {\"type\": \"tanh\"}, " CLOSE "], " CLASSES "}");
	check(PLANES,
	    "{\"layers\": [" CONV
	    ", {\"type\": \"conv2d\", \"out\": 6, \"kernel\": [3, 2], \"stride\": "
	    "2, \"padding\": 1, \"groups\": 2, \"bias\": false}, {\"type\": \"tanh\"}, " CLOSE
	    "], " CLASSES "}");
	check(SERIES,
	    "{\"layers\": [{\"type\": \"conv1d\", \"out\": 4, \"kernel\": 3, \"padding\": 1}, "
	    "{\"type\": "
	    "\"tanh\"}, {\"type\": \"conv1d\", \"out\": 4, \"kernel\": 3, \"stride\": 2, "
	    "\"groups\": 4}, "
	    "{\"type\": \"global_avgpool\"}, {\"type\": \"linear\", \"out\": 3}], " CLASSES "}");
}

static void
joins(void **state)
{
	(void)state;
	check(PLANES,
	    "{\"layers\": [{\"type\": \"conv2d\", \"name\": \"a\", \"out\": 4, \"kernel\": 3, "
	    "\"padding\": "
	    "1}, {\"type\": \"global_avgpool\"}, {\"type\": \"linear\", \"out\": 4}, {\"type\": "
	    "\"sigmoid\", \"name\": \"gate\"}, {\"type\": \"multiply\", \"inputs\": [\"a\", "
	    "\"gate\"]}, "
	    "{\"type\": \"concat\", \"inputs\": [\"multiply5\", \"a\", \"input\"]}, " CLOSE
	    "], " CLASSES "}");
	check(SERIES,
	    "{\"layers\": [{\"type\": \"linear\", \"name\": \"a\", \"out\": 4}, {\"type\": "
	    "\"linear\", "
	    "\"name\": \"b\", \"inputs\": [\"input\"], \"out\": 4}, {\"type\": \"multiply\", "
	    "\"inputs\": "
	    "[\"a\", \"b\"]}, {\"type\": \"concat\", \"dim\": 2, \"inputs\": [\"multiply3\", "
	    "\"a\"]}, "
	    "{\"type\": \"concat\", \"inputs\": [\"concat4\", \"concat4\"]}, " CLOSE "], " CLASSES
	    "}");
}

static void
recurrent(void **state)
{
	static const char *const types[] = {"lstm", "gru"};
	char model[1024];

	(void)state;
	for (size_t i = 0; i < 2; i++)
		for (int form = 0; form < 4; form++) {
			snprintf(model, sizeof(model),
			    "{\"layers\": [{\"type\": \"embedding\", \"vocabulary\": 9, \"out\": "
			    "3}, "
			    "{\"type\": \"%s\", \"out\": 5, \"layers\": %d, \"bias\": %s, "
			    "\"output\": "
			    "\"%s\"}, {\"type\": \"linear\", \"out\": 4}], " CLASSES "}",
			    types[i], form % 2 + 1, form < 3 ? "true" : "false",
			    form < 2 ? "sequence" : "last");
			check(WORDS, model);
		}
}

static void
attention(void **state)
{
	char model[1024];

	(void)state;
	for (int form = 0; form < 4; form++) {
		snprintf(model, sizeof(model),
		    "{\"layers\": [{\"type\": \"embedding\", \"vocabulary\": 9, \"out\": 8}, "
		    "{\"type\": "
		    "\"positions\", \"name\": \"p\"}, {\"type\": \"attention\", \"heads\": 2, "
		    "\"causal\": "
		    "%s, \"positions\": \"%s\", \"bias\": %s}, {\"type\": \"add\", \"inputs\": "
		    "[\"attention3\", \"p\"]}, {\"type\": \"layernorm\"}, {\"type\": \"linear\", "
		    "\"out\": 4}], " CLASSES "}",
		    form % 2 ? "true" : "false", form < 2 ? "none" : "rotary",
		    form == 3 ? "false" : "true");
		check(WORDS, model);
	}
}

/* What was dropped on the way forward is on the way back. */
static void
dropped(void **state)
{
	static const struct draw draw = {.seed = 3};
	char model[1024];

	(void)state;
	for (int form = 0; form < 3; form++) {
		snprintf(model, sizeof(model),
		    "{\"layers\": [{\"type\": \"embedding\", \"vocabulary\": 9, \"out\": 8}, "
		    "{\"type\": \"attention\", \"heads\": 2, \"dropout\": 0.4, \"causal\": %s}, "
		    "{\"type\": \"linear\", \"out\": 4}], " CLASSES "}",
		    form % 2 ? "true" : "false");
		check_drawn(form == 2 ? "\"window\": 67" : WORDS, model, &draw);
	}
	check_drawn(PLANES,
	    "{\"layers\": [" CONV
	    ", {\"type\": \"tanh\"}, {\"type\": \"dropout2d\", \"rate\": 0.4}, " CLOSE "], " CLASSES
	    "}",
	    &draw);
}

/* A batch in two passes drops what the whole does: places count, not passes. Evaluation drops nothing. */
static void
dropped_by_place(void **state)
{
	static const char *const layers[] = {
	    "{\"type\": \"attention\", \"heads\": 2, \"dropout\": 0.5}",
	    "{\"type\": \"dropout2d\", \"rate\": 0.5}"};
	struct draw draw = {.seed = 3};
	char model[512];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct net_trial t;
		float whole[BATCH * 70];
		struct net_result result;
		snprintf(model, sizeof(model), "{\"layers\": [%s], \"loss\": \"mse\"}", layers[i]);
		begin(&t, "\"shape\": [7, 10]", model);
		t.batch.draw = &draw;
		assert_int_equal(net_forward(t.net, 0, &t.batch), ERR_OK);
		memcpy(whole, net_output(t.net), sizeof(whole));
		draw.example = 2;
		const struct net_batch last = {
		    .x = t.x + 2 * 70, .targets = t.targets, .n = 1, .draw = &draw};
		assert_int_equal(net_forward(t.net, 0, &last), ERR_OK);
		assert_memory_equal(net_output(t.net), whole + 2 * 70, 70 * sizeof(float));
		assert_int_equal(net_eval(t.net, &t.batch, &result), ERR_OK);
		assert_memory_not_equal(net_output(t.net), whole, sizeof(whole));
		if (i == 1)
			assert_memory_equal(net_output(t.net), t.x, sizeof(whole));
		for (size_t k = 0; i == 1 && k < BATCH * 70; k++)
			assert_true(whole[k] == (whole[k / 10 * 10] == 0 ? 0 : 2 * t.x[k]));
		draw.example = 0;
		net_trial_end(&t);
	}
}

/* An agent that passes over the key would train without it; 0 is what it does. */
static void
dropped_by_agents_that_can(void **state)
{
	static const char offered[1][RECIPE_NAME_MAX] = {"attention-dropout"};
	const struct codec *f32 = codec_find_name("f32");
	struct recipe r;

	(void)state;
	net_trial_recipe(&r, SERIES,
	    "{\"layers\": [{\"type\": \"attention\", \"heads\": 1, \"dropout\": 0}], " CLASSES "}");
	assert_string_equal(recipe_feature_missing(&r, f32, offered, 0), "networks");
	r.net.layers[0].rate = 0.1f;
	assert_string_equal(recipe_feature_missing(&r, f32, offered, 0), "attention-dropout");
	assert_string_equal(recipe_feature_missing(&r, f32, offered, 1), "networks");
	r.builtin = false;
	assert_string_equal(recipe_feature_missing(&r, f32, offered, 0), "networks");
	recipe_deinit(&r);
}

/* What reads the same is added. */
static void
steps(void **state)
{
	(void)state;
	check(SERIES,
	    "{\"layers\": [{\"type\": \"linear\", \"name\": \"a\", \"out\": 4}, {\"type\": "
	    "\"reverse\", \"name\": \"r\"}, {\"type\": \"gru\", \"name\": \"g\", \"out\": 4}, "
	    "{\"type\": \"reverse\", \"name\": \"b\"}, {\"type\": \"multiply\", \"name\": "
	    "\"p\", \"inputs\": [\"a\", \"b\"]}, {\"type\": \"pool_steps\", \"by\": \"mean\", "
	    "\"name\": \"x\"}, {\"type\": \"pool_steps\", \"by\": \"max\", \"inputs\": "
	    "[\"p\"], \"name\": \"y\"}, {\"type\": \"pool_steps\", \"by\": \"first\", "
	    "\"inputs\": [\"p\"], \"name\": \"z\"}, {\"type\": \"pool_steps\", \"by\": "
	    "\"last\", \"inputs\": [\"p\"], \"name\": \"w\"}, {\"type\": \"concat\", "
	    "\"inputs\": [\"x\", \"y\", \"z\", \"w\"]}, {\"type\": \"linear\", \"out\": "
	    "3}], " CLASSES "}");
}

#define TIED "{\"type\": \"embedding\", \"name\": \"e\", \"vocabulary\": 4, \"out\": 5}, "

/* A weight's gradient is the sum of those of all its uses. */
static void
ties(void **state)
{
	(void)state;
	check(WORDS,
	    "{\"layers\": [" TIED "{\"type\": \"tanh\"}, {\"type\": \"linear\", \"out\": 5}, "
	    "{\"type\": \"linear\", \"out\": 4, \"weights\": \"e\"}], " CLASSES "}");
	check(WORDS,
	    "{\"layers\": [" TIED
	    "{\"type\": \"linear\", \"out\": 4, \"weights\": \"e\", \"bias\": false, \"name\": "
	    "\"a\"}, {\"type\": \"linear\", \"out\": 5}, {\"type\": \"tanh\"}, "
	    "{\"type\": \"linear\", \"out\": 4, \"weights\": \"e\"}], " CLASSES "}");
	check(FLAT,
	    "{\"layers\": [{\"type\": \"linear\", \"name\": \"a\", \"out\": 6}, {\"type\": "
	    "\"tanh\"}, {\"type\": \"linear\", \"out\": 6, \"weights\": \"a\"}, {\"type\": "
	    "\"tanh\"}, {\"type\": \"linear\", \"out\": 6, \"weights\": \"a\"}], \"loss\": "
	    "\"mse\"}");
}

#define LORA ", \"lora\": {\"rank\": 2, \"alpha\": 3}}"

static void
lora(void **state)
{
	(void)state;
	check(FLAT,
	    "{\"layers\": [{\"type\": \"linear\", \"out\": 7" LORA
	    ", {\"type\": \"tanh\"}, {\"type\": \"linear\", \"out\": 3, \"bias\": false" LORA
	    "], \"loss\": \"mse\"}");
	check(SERIES,
	    "{\"layers\": [{\"type\": \"linear\", \"out\": 6" LORA
	    ", {\"type\": \"tanh\"}, {\"type\": \"linear\", \"out\": 3, \"bias\": false" LORA
	    ", " CLOSE "], " CLASSES "}");
	/* What reads the same is added. */
	check(SERIES,
	    "{\"layers\": [{\"type\": \"linear\", \"name\": \"a\", \"out\": 6}, {\"type\": "
	    "\"linear\", \"name\": \"b\", \"out\": 6" LORA
	    ", {\"type\": \"multiply\", \"inputs\": [\"a\", \"b\"]}, " CLOSE "], " CLASSES "}");
}

static void
losses(void **state)
{
	static const char *const keys[] = {"\"label_smoothing\": 0.2", "\"ignore_index\": 1",
	    "\"class_weights\": [0.5, 1, 2]",
	    "\"label_smoothing\": 0.1, \"ignore_index\": 2, \"class_weights\": [0.5, 1, 2]"};
	char model[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		snprintf(
		    model, sizeof(model), "{\"layers\": [" CLOSE "], " CLASSES ", %s}", keys[i]);
		check("\"shape\": [6], \"classes\": 3", model);
	}
	check(FLAT, "{\"layers\": [{\"type\": \"linear\", \"out\": 3}], \"loss\": \"bce\"}");
	check(FLAT,
	    "{\"layers\": [{\"type\": \"linear\", \"out\": 2}, {\"type\": \"linear\", \"out\": "
	    "6}], "
	    "\"loss\": \"mse\", \"target\": \"input\"}");
}

/* A step at a time gives what all steps together give: a net without a way back keeps less and gives the same bits. */
static void
evaluation_is_training(void **state)
{
	static const char *const models[] = {
	    "{\"layers\": [{\"type\": \"embedding\", \"vocabulary\": 9, \"out\": 3}, {\"type\": "
	    "\"lstm\", "
	    "\"out\": 5, \"layers\": 2}, {\"type\": \"gru\", \"out\": 6, \"layers\": 3, "
	    "\"output\": "
	    "\"last\"}, {\"type\": \"linear\", \"out\": 4}], " CLASSES "}",
	    "{\"layers\": [{\"type\": \"embedding\", \"vocabulary\": 9, \"out\": 8}, {\"type\": "
	    "\"attention\", \"heads\": 4, \"causal\": true, \"positions\": \"rotary\"}, {\"type\": "
	    "\"rmsnorm\"}, {\"type\": \"linear\", \"out\": 4}], " CLASSES "}"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct net_trial t;
		struct net *still = NULL;
		struct net_result a, b;
		begin(&t, WORDS, models[i]);
		assert_int_equal(net_new(&still, &t.recipe.net, 0, BATCH, false, 0, NULL), ERR_OK);
		memcpy(net_params(still), net_params(t.net), net_tensors(t.net)->bytes);
		assert_int_equal(net_eval(still, &t.batch, &a), ERR_OK);
		assert_int_equal(net_forward(t.net, 0, &t.batch), ERR_OK);
		assert_memory_equal(net_output(still), net_output(t.net),
		    BATCH * net_labels(still) * net_outputs(still) * sizeof(float));
		assert_int_equal(
		    net_backward(t.net, 0, &(struct net_gradients){.share = 1}, &b), ERR_OK);
		assert_true(a.loss == b.loss && a.labels == BATCH * net_labels(still));
		net_free(still);
		net_trial_end(&t);
	}
}

static void
batchnorm_counts(void **state)
{
	struct net_trial t;
	struct net_result result;

	(void)state;
	begin(&t, FLAT,
	    "{\"layers\": [{\"type\": \"batchnorm\", \"momentum\": 1}, {\"type\": \"linear\", "
	    "\"out\": 2}], "
	    "\"loss\": \"mse\"}");
	assert_int_equal(t.recipe.rule_count, 2);
	assert_int_equal(net_add(t.net, &t.batch, 1, &result), ERR_OK);
	const struct tensor *mean =
	    tensor_table_find(net_tensors(t.net), "batchnorm1.running_mean");
	const struct tensor *spread =
	    tensor_table_find(net_tensors(t.net), "batchnorm1.running_var");
	const float *m = net_params(t.net) + mean->begin / 4,
		    *v = net_params(t.net) + spread->begin / 4;
	for (size_t c = 0; c < 6; c++) {
		double sum = 0, squares = 0;
		for (size_t i = 0; i < BATCH; i++)
			sum += (double)t.x[i * 6 + c];
		for (size_t i = 0; i < BATCH; i++)
			squares += pow((double)t.x[i * 6 + c] - sum / BATCH, 2);
		assert_true(fabs(sum / BATCH - (double)m[c]) < 1e-6);
		assert_true(fabs(squares / (BATCH - 1) - (double)v[c]) < 1e-5);
	}
	net_trial_end(&t);
}

static void
refusals(void **state)
{
	static const struct {
		const char *shape, *model, *says;
	} all[] = {
	    {FLAT, "{\"layers\": [{\"type\": \"groupnorm\", \"groups\": 4}], \"loss\": \"mse\"}",
		"6 channels do not fall into 4 groups"},
	    {PLANES, "{\"layers\": [{\"type\": \"lstm\", \"out\": 3}], \"loss\": \"mse\"}",
		"needs a sequence"},
	    {SERIES, "{\"layers\": [{\"type\": \"attention\", \"heads\": 2}], \"loss\": \"mse\"}",
		"does not fall into 2 heads"},
	    {PLANES, "{\"layers\": [{\"type\": \"reverse\"}], \"loss\": \"mse\"}",
		"needs a sequence"},
	    {FLAT,
		"{\"layers\": [{\"type\": \"pool_steps\", \"by\": \"max\"}], \"loss\": "
		"\"mse\"}",
		"needs a sequence"},
	    {PLANES,
		"{\"layers\": [{\"type\": \"conv1d\", \"out\": 3, \"kernel\": 1}], \"loss\": "
		"\"mse\"}",
		"channels and length"},
	    {PLANES,
		"{\"layers\": [" CONV ", {\"type\": \"concat\", \"inputs\": [\"input\", "
		"\"conv2d1\"], \"dim\": 2}], \"loss\": \"mse\"}",
		"dim must be 1"},
	    {FLAT,
		"{\"layers\": [{\"type\": \"linear\", \"out\": 5}], \"loss\": \"mse\", \"target\": "
		"\"input\"}",
		"5 outputs are to meet an input of 6 values"},
	    {"\"shape\": [6], \"classes\": 3",
		"{\"layers\": [{\"type\": \"linear\", \"out\": 3}], " CLASSES
		", \"class_weights\": [1, 2]}",
		"2 for 3 classes"}};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct recipe r;
		struct net *net = NULL;
		struct why why = {""};
		net_trial_recipe(&r, all[i].shape, all[i].model);
		assert_int_not_equal(
		    net_new(&net, &r.net, r.data.class_count, BATCH, true, 0, &why), ERR_OK);
		if (!strstr(why.text, all[i].says))
			fail_msg("\"%s\" is not in \"%s\"", all[i].says, why.text);
		recipe_deinit(&r);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(activations),
	    cmocka_unit_test(norms_of_planes),
	    cmocka_unit_test(norms_of_rows),
	    cmocka_unit_test(convolutions),
	    cmocka_unit_test(joins),
	    cmocka_unit_test(recurrent),
	    cmocka_unit_test(attention),
	    cmocka_unit_test(dropped),
	    cmocka_unit_test(dropped_by_place),
	    cmocka_unit_test(dropped_by_agents_that_can),
	    cmocka_unit_test(steps),
	    cmocka_unit_test(ties),
	    cmocka_unit_test(lora),
	    cmocka_unit_test(losses),
	    cmocka_unit_test(evaluation_is_training),
	    cmocka_unit_test(batchnorm_counts),
	    cmocka_unit_test(refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
