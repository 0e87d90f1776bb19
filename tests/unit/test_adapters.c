/* stages: gcc clang address */
/* Linear layers that use another's weight, and lora: steps, roles of tensors, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "codec.h"
#include "net_trial.h"
#include "take.h"
#include "tensor.h"

#define WORDS "\"window\": 5"
#define FLAT "\"shape\": [6]"
#define TIED \
	"{\"layers\": [{\"type\": \"embedding\", \"name\": \"e\", \"vocabulary\": 9, \"out\": " \
	"4}, " \
	"{\"type\": \"tanh\"}, {\"type\": \"linear\", \"name\": \"w\", \"out\": 9, \"weights\": " \
	"\"e\"}], \"loss\": \"cross_entropy\"}"
#define LORA \
	"{\"layers\": [{\"type\": \"linear\", \"name\": \"a\", \"out\": 5, \"lora\": {\"rank\": " \
	"2, " \
	"\"alpha\": 4}}, {\"type\": \"tanh\"}, {\"type\": \"linear\", \"name\": \"b\", \"out\": " \
	"3}], " \
	"\"loss\": \"mse\"}"

/* Both gradients belong to the old weight: a plain step, which otherwise moves weights on its way, is -rate times their sum. */
static void
a_step_of_shared_weights(void **state)
{
	static const struct net_update sgd = {.rate = 0.25f};
	struct net_trial t;
	struct net_result result;

	(void)state;
	net_trial_begin(&t, 3, WORDS, TIED);
	const struct tensor_table *table = net_tensors(t.net);
	assert_int_equal(table->count, 2);
	assert_string_equal(table->items[0].name, "e.weight");
	assert_string_equal(table->items[1].name, "w.bias");
	assert_int_equal(net_step(t.net, &t.batch, &sgd, &result), ERR_STATE);
	assert_int_equal(net_prepare(t.net, &sgd, NULL), ERR_OK);
	size_t n = (size_t)table->elements;
	float *before = malloc(n * sizeof(*before)), *gradient = malloc(n * sizeof(*gradient));
	memcpy(before, net_params(t.net), n * sizeof(*before));
	assert_int_equal(net_gradient(t.net, &t.batch, gradient), ERR_OK);
	assert_int_equal(net_step(t.net, &t.batch, &sgd, &result), ERR_OK);
	for (size_t i = 0; i < n; i++)
		assert_true(net_params(t.net)[i] == before[i] - 0.25f * gradient[i]);
	free(before);
	free(gradient);
	net_trial_end(&t);
}

static void
what_is_held_is_held_for_all(void **state)
{
	static const struct net_update sgd = {.rate = 0.25f};
	struct net_trial t;
	struct net_result result;

	(void)state;
	net_trial_begin(&t, 3, WORDS, TIED);
	float before[36];
	net_trial_freeze(&t, &(struct tensor_rule){"e.weight", TENSOR_FROZEN}, 1);
	memcpy(before, net_params(t.net), sizeof(before));
	assert_int_equal(net_prepare(t.net, &sgd, NULL), ERR_OK);
	assert_int_equal(net_step(t.net, &t.batch, &sgd, &result), ERR_OK);
	assert_memory_equal(before, net_params(t.net), sizeof(before));
	assert_true(net_params(t.net)[36] != 0);
	net_trial_end(&t);
}

/* What travels is the two narrow matrices, and what other layers train. */
static void
lora_freezes_its_base(void **state)
{
	static const enum tensor_role roles[] = {
	    TENSOR_FROZEN, TENSOR_FROZEN, TENSOR_TRAIN, TENSOR_TRAIN, TENSOR_TRAIN, TENSOR_TRAIN};
	static const char *const names[] = {
	    "a.weight", "a.bias", "a.lora_A.weight", "a.lora_B.weight", "b.weight", "b.bias"};
	struct net_trial t;
	struct tensor_table table;

	(void)state;
	net_trial_begin(&t, 3, FLAT, LORA);
	assert_int_equal(tensor_table_copy(&table, net_tensors(t.net)), ERR_OK);
	assert_int_equal(table.count, 6);
	assert_int_equal(
	    tensor_table_assign(&table, t.recipe.rules, t.recipe.rule_count, NULL), ERR_OK);
	for (size_t i = 0; i < 6; i++) {
		assert_string_equal(table.items[i].name, names[i]);
		assert_int_equal(table.items[i].role, roles[i]);
	}
	assert_int_equal(table.elements, 2 * 6 + 5 * 2 + 3 * 5 + 3);
	assert_null(tensor_table_unused(&table, t.recipe.rules, t.recipe.rule_count));
	tensor_table_deinit(&table);
	net_trial_end(&t);
}

/* The job's own pattern comes first. */
static void
the_base_may_train(void **state)
{
	static const char text[] =
	    "{\"model\": " LORA ", \"tensors\": {\"a.weight\": \"train\", \"b.*\": \"local\"}, "
	    "\"data\": {\"name\": \"d\", " FLAT "}, \"local\": {\"optimizer\": {\"rate\": 0.1}}}";
	struct json *doc = NULL;
	struct recipe r;
	struct net *net = NULL;
	struct tensor_table table;

	(void)state;
	assert_int_equal(json_parse(&doc, text, strlen(text), NULL), ERR_OK);
	assert_int_equal(recipe_parse(&r, doc, true, NULL), ERR_OK);
	assert_int_equal(net_new(&net, &r.net, 0, 1, false, 0, NULL), ERR_OK);
	assert_int_equal(tensor_table_copy(&table, net_tensors(net)), ERR_OK);
	assert_int_equal(tensor_table_assign(&table, r.rules, r.rule_count, NULL), ERR_OK);
	assert_int_equal(table.items[0].role, TENSOR_TRAIN);
	assert_int_equal(table.items[1].role, TENSOR_FROZEN);
	assert_int_equal(table.items[4].role, TENSOR_LOCAL);
	tensor_table_deinit(&table);
	net_free(net);
	recipe_deinit(&r);
	json_free(doc);
}

/* A begins within 1 / sqrt(in), B as zeros: the network begins as its base. */
static void
lora_begins_as_nothing(void **state)
{
	struct net_trial t;
	struct net_result result;
	float before[9];

	(void)state;
	net_trial_begin(&t, 3, FLAT, LORA);
	float *a = net_params(t.net) + 35, *b = a + 12, top = 0;
	for (size_t i = 0; i < 12; i++)
		top = fmaxf(top, fabsf(a[i]));
	assert_true(top > 0.2f && top <= 1 / sqrtf(6));
	for (size_t i = 0; i < 10; i++)
		assert_true(b[i] == 0);
	assert_int_equal(net_eval(t.net, &t.batch, &result), ERR_OK);
	memcpy(before, net_output(t.net), sizeof(before));
	memset(a, 0, 12 * sizeof(*a));
	assert_int_equal(net_eval(t.net, &t.batch, &result), ERR_OK);
	assert_memory_equal(before, net_output(t.net), sizeof(before));
	net_trial_end(&t);
}

/* By the document alone. */
static void
words_that_are_refused(void **state)
{
#define ALIKE "{\"type\": \"linear\", \"name\": \"a\", \"out\": 6}, "
	static const struct {
		const char *layers, *says;
	} all[] = {
	    {"{\"type\": \"linear\", \"out\": 6, \"weights\": \"a\"}", "no earlier layer"},
	    {"{\"type\": \"linear\", \"out\": 6, \"name\": \"a\", \"weights\": \"a\"}",
		"no earlier layer"},
	    {"{\"type\": \"linear\", \"out\": 6, \"weights\": \"input\"}", "no earlier layer"},
	    {"{\"type\": \"relu\", \"name\": \"r\"}, {\"type\": \"linear\", \"out\": 6, "
	     "\"weights\": "
	     "\"r\"}",
		"neither an embedding nor a linear"},
	    {ALIKE "{\"type\": \"linear\", \"name\": \"b\", \"out\": 6, \"weights\": \"a\"}, "
		   "{\"type\": "
		   "\"linear\", \"out\": 6, \"weights\": \"b\"}",
		"with a weight of its own"},
	    {ALIKE "{\"type\": \"conv1d\", \"out\": 6, \"kernel\": 1, \"weights\": \"a\"}",
		"weights"},
	    {ALIKE
		"{\"type\": \"linear\", \"out\": 6, \"weights\": \"a\", \"lora\": {\"rank\": 1}}",
		"does not go with \"weights\""},
	    {"{\"type\": \"linear\", \"out\": 6, \"lora\": {\"rank\": 0}}", "rank"},
	    {"{\"type\": \"linear\", \"out\": 6, \"lora\": {\"rank\": 4097}}", "rank"},
	    {"{\"type\": \"linear\", \"out\": 6, \"lora\": {\"alpha\": 1}}", "rank"},
	    {"{\"type\": \"linear\", \"out\": 6, \"lora\": {\"rank\": 1, \"alpha\": 0}}", "alpha"},
	    {"{\"type\": \"linear\", \"out\": 6, \"lora\": {\"rank\": 1, \"alpha\": -1}}", "alpha"},
	    {"{\"type\": \"linear\", \"out\": 6, \"lora\": {\"rank\": 1, \"alpha\": 1e7}}",
		"alpha"},
	    {"{\"type\": \"linear\", \"out\": 6, \"lora\": {\"rank\": 1, \"dropout\": 0.1}}",
		"dropout"},
	    {"{\"type\": \"linear\", \"out\": 6, \"lora\": 4}", "lora"},
	};
	char text[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct json *doc = NULL;
		struct recipe r;
		struct why why = {""};
		snprintf(text, sizeof(text),
		    "{\"model\": {\"layers\": [%s], \"loss\": \"mse\"}, \"data\": {\"name\": "
		    "\"d\", " FLAT "}, \"local\": {\"optimizer\": {\"rate\": 0.1}}}",
		    all[i].layers);
		enum err e = json_parse(&doc, text, strlen(text), &why);
		if (!e)
			e = recipe_parse(&r, doc, true, &why);
		if (!e || !strstr(why.text, all[i].says))
			fail_msg("%s: \"%s\"", all[i].layers, why.text);
		json_free(doc);
	}
}

/* Shapes that do not meet. */
static void
shapes_that_are_refused(void **state)
{
	static const struct {
		const char *layers, *says;
	} all[] = {
	    {"{\"type\": \"linear\", \"name\": \"a\", \"out\": 5}, {\"type\": \"linear\", \"out\": "
	     "6, "
	     "\"weights\": \"a\"}",
		"the weight of \"a\" is [5, 6], and [6, 5] is wanted"},
	    {"{\"type\": \"linear\", \"out\": 9, \"lora\": {\"rank\": 7}}", "its weight is [9, 6]"},
	    {"{\"type\": \"linear\", \"out\": 3, \"lora\": {\"rank\": 4}}", "its weight is [3, 6]"},
	    {"{\"type\": \"linear\", \"name\": \"a\", \"out\": 6, \"lora\": {\"rank\": 4}}, "
	     "{\"type\": "
	     "\"linear\", \"name\": \"a.lora_A\", \"out\": 6}",
		"two tensors are named"},
	};
	char model[512];

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct recipe r;
		struct net *net = NULL;
		struct why why = {""};
		snprintf(
		    model, sizeof(model), "{\"layers\": [%s], \"loss\": \"mse\"}", all[i].layers);
		net_trial_recipe(&r, FLAT, model);
		assert_int_not_equal(net_new(&net, &r.net, 0, 1, true, 0, &why), ERR_OK);
		if (!strstr(why.text, all[i].says))
			fail_msg("%s: \"%s\"", all[i].layers, why.text);
		recipe_deinit(&r);
	}
}

/* A description by hand is checked as well. */
static void
places_out_of_range(void **state)
{
	struct net_trial t;
	struct net *net = NULL;
	struct why why = {""};

	(void)state;
	net_trial_begin(&t, 1, WORDS, TIED);
	struct layer_spec *last = &t.recipe.net.layers[2];
	for (uint32_t tied = 2; tied < 6; tied += 1) {
		last->tied = tied;
		assert_int_equal(net_new(&net, &t.recipe.net, 0, 1, true, 0, &why), ERR_INVALID);
	}
	last->tied = 1;
	t.recipe.net.layers[1].tied = 1;
	assert_int_equal(net_new(&net, &t.recipe.net, 0, 1, true, 0, &why), ERR_INVALID);
	net_trial_end(&t);
}

static enum err
part(const struct net_spec *spec, size_t first, size_t last)
{
	struct net *net = NULL;
	struct why why = {""};
	const struct net_part part = {.spec = spec,
	    .first = first,
	    .last = last,
	    .max_batch = 1,
	    .contexts = 1,
	    .train = true};
	enum err e = net_new_part(&net, &part, &why);

	net_free(net);
	return e;
}

static void
no_cut_between(void **state)
{
	struct net_trial t;

	(void)state;
	net_trial_begin(&t, 1, WORDS, TIED);
	assert_int_equal(part(&t.recipe.net, 0, 3), ERR_OK);
	assert_int_equal(part(&t.recipe.net, 0, 1), ERR_UNSUPPORTED);
	assert_int_equal(part(&t.recipe.net, 1, 3), ERR_UNSUPPORTED);
	net_trial_end(&t);
	net_trial_begin(&t, 1, FLAT, LORA);
	assert_int_equal(part(&t.recipe.net, 0, 1), ERR_OK);
	assert_int_equal(part(&t.recipe.net, 1, 3), ERR_OK);
	net_trial_end(&t);
}

/* Narrow products count; a device that does not know the words gets no such job. */
static void
costs_and_devices(void **state)
{
	static const char *const models[] = {TIED, LORA};
	struct net_trial t;

	(void)state;
	net_trial_begin(&t, 1, FLAT, LORA);
	assert_true(net_work(t.net) == 5 * 6 + 2 * (5 + 6) + 8 * 5 + 3 * 5);
	net_trial_end(&t);
	/* The words alone, not what else is new in it. */
	for (size_t i = 0; i < 2; i++) {
		net_trial_begin(&t, 1, i == 0 ? WORDS : FLAT, models[i]);
		t.recipe.net.layers[0].init = INIT_HE;
		assert_true(net_spec_adapted(&t.recipe.net) && net_spec_modern(&t.recipe.net));
		net_trial_end(&t);
	}
}

/* In steps of several batches a device of before adds up a shared weight's gradients in another order. */
static void
shared_weights_in_pieces(void **state)
{
	static const char offered[][RECIPE_NAME_MAX] = {
	    "accumulate", "adapters", "micro-batch", "networks", "random-counter", "window"};
	const struct codec *f32 = codec_find_name("f32");
	struct net_trial t;

	(void)state;
	net_trial_begin(&t, 1, WORDS, TIED);
	t.recipe.builtin = true;
	t.recipe.local.batch = 4;
	assert_null(recipe_feature_missing(&t.recipe, f32, offered, 6));
	t.recipe.local.micro_batch = 2;
	assert_string_equal(recipe_feature_missing(&t.recipe, f32, offered, 6), "tied-pieces");
	t.recipe.local.micro_batch = 0;
	t.recipe.local.accumulate = 2;
	assert_string_equal(recipe_feature_missing(&t.recipe, f32, offered, 6), "tied-pieces");
	t.recipe.net.arithmetic = ARITHMETIC_FAST;
	assert_null(recipe_feature_missing(&t.recipe, f32, offered, 6));
	net_trial_end(&t);
	net_trial_begin(&t, 1, WORDS,
	    "{\"layers\": [{\"type\": \"embedding\", \"vocabulary\": 9, \"out\": 4}, {\"type\": "
	    "\"linear\", \"out\": 9}], \"loss\": \"cross_entropy\"}");
	t.recipe.builtin = true;
	t.recipe.local.accumulate = 2;
	assert_null(recipe_feature_missing(&t.recipe, f32, offered, 6));
	net_trial_end(&t);
}

/* A file: these names, each of 36 or 9 numbers from the one that is given. */
struct file {
	struct tensor_table table;
	float data[256];
};

static void
put(struct file *f, const char *name, uint64_t rows, uint64_t width, float from)
{
	const uint64_t shape[2] = {rows, width};
	size_t at = (size_t)(f->table.bytes / sizeof(float));

	assert_int_equal(tensor_table_add(&f->table, name, shape, width > 0 ? 2 : 1, NULL), ERR_OK);
	for (size_t i = at; i < f->table.bytes / sizeof(float); i++)
		f->data[i] = from + (float)(i - at);
}

static void
taken(struct net *net, struct file *f, enum err want, const char *says)
{
	struct why why = {""};
	enum err e = take_fits(net, &f->table, f->data, &why);

	if (e != want || (says && !strstr(why.text, says)))
		fail_msg("%d, \"%s\"", (int)e, why.text);
	assert_int_equal(take_file(net, &f->table, f->data, &why), want);
	tensor_table_deinit(&f->table);
	*f = (struct file){0};
}

/* As save_file and save_model of safetensors leave one or the other name; both are fine if they are one. */
static void
files_of_shared_weights(void **state)
{
	struct file f = {0};
	struct net_trial t;

	(void)state;
	net_trial_begin(&t, 1, WORDS, TIED);
	for (int form = 0; form < 3; form++) {
		put(&f, "w.bias", 9, 0, 100);
		if (form != 1)
			put(&f, "w.weight", 9, 4, 1);
		if (form != 0)
			put(&f, "e.weight", 9, 4, 1);
		memset(net_params(t.net), 0, 45 * sizeof(float));
		taken(t.net, &f, ERR_OK, NULL);
		for (size_t i = 0; i < 45; i++)
			assert_true(net_params(t.net)[i] == (float)(i < 36 ? i + 1 : i + 64));
	}
	put(&f, "w.bias", 9, 0, 100);
	put(&f, "w.weight", 9, 4, 1);
	put(&f, "e.weight", 9, 4, 2);
	taken(t.net, &f, ERR_INVALID, "\"w.weight\" is not equal to \"e.weight\"");
	put(&f, "w.bias", 9, 0, 100);
	put(&f, "w.weight", 4, 9, 1);
	taken(t.net, &f, ERR_INVALID, "\"e.weight\" is F32 [4, 9]");
	put(&f, "w.bias", 9, 0, 100);
	taken(t.net, &f, ERR_INVALID, "\"e.weight\" is missing");
	net_trial_end(&t);
}

/* A base model: its narrow matrices stay as they are drawn. One of them alone is a mistake. */
static void
files_without_lora(void **state)
{
	struct file f = {0};
	struct net_trial t;

	(void)state;
	net_trial_begin(&t, 1, FLAT, LORA);
	float drawn = net_params(t.net)[35];
	assert_true(drawn != 0);
	for (int form = 0; form < 3; form++) {
		put(&f, "b.weight", 3, 5, 1);
		put(&f, "b.bias", 3, 0, 1);
		put(&f, "a.weight", 5, 6, 7);
		put(&f, "a.bias", 5, 0, 1);
		if (form > 0)
			put(&f, "a.lora_A.weight", 2, 6, 50);
		if (form == 2)
			put(&f, "a.lora_B.weight", 5, 2, 70);
		taken(t.net, &f, form == 1 ? ERR_INVALID : ERR_OK,
		    form == 1 ? "\"a.lora_B.weight\" is missing" : NULL);
		assert_true(net_params(t.net)[0] == 7);
		assert_true(net_params(t.net)[35] == (form == 2 ? 50 : drawn));
		assert_true(net_params(t.net)[47] == (form == 2 ? 70 : 0));
	}
	net_trial_end(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_step_of_shared_weights),
	    cmocka_unit_test(what_is_held_is_held_for_all),
	    cmocka_unit_test(lora_freezes_its_base),
	    cmocka_unit_test(the_base_may_train),
	    cmocka_unit_test(lora_begins_as_nothing),
	    cmocka_unit_test(words_that_are_refused),
	    cmocka_unit_test(shapes_that_are_refused),
	    cmocka_unit_test(places_out_of_range),
	    cmocka_unit_test(no_cut_between),
	    cmocka_unit_test(costs_and_devices),
	    cmocka_unit_test(shared_weights_in_pieces),
	    cmocka_unit_test(files_of_shared_weights),
	    cmocka_unit_test(files_without_lora),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
