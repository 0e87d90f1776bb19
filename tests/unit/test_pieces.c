/* stages: gcc clang address */
/* Batches in pieces: what a piece counts, which examples are left out, and which jobs need an agent that does so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec.h"
#include "glyphs.h"
#include "job.h"
#include "net_inside.h"
#include "tensor.h"
#include "train.h"
#include "training.h"

static struct why why;

/* A network for drawn digits; `model` and `rest` are more keys, each with a comma before it. */
struct document {
	const char *norm, *model, *local, *rest;
};

static enum err
parse(struct job_spec *job, const struct document *d)
{
	char text[2048];
	int n = snprintf(text, sizeof(text),
	    "{\"name\": \"n\", \"model\": {\"layers\": [{\"type\": \"flatten\"}, {\"type\": "
	    "\"linear\", "
	    "\"name\": \"fc1\", \"out\": 8}, {\"type\": \"%s\", \"name\": \"norm\"}, {\"type\": "
	    "\"relu\"}, "
	    "{\"type\": \"linear\", \"name\": \"fc2\", \"out\": 10}], \"loss\": "
	    "\"cross_entropy\"%s}, "
	    "\"data\": {\"name\": \"d\", \"shape\": [1, 28, 28], \"classes\": 10, "
	    "\"validation\": 0.1}, "
	    "\"local\": {%s, \"optimizer\": {\"rate\": 0.1%s, \"round\": {\"goal\": 1}}",
	    d->norm, d->model, d->local, d->rest);

	assert_in_range(n, 1, sizeof(text) - 1);
	return job_parse(job, text, (size_t)n, &why);
}

static struct job_spec
job_of(const struct document *d)
{
	struct job_spec job;

	if (parse(&job, d))
		fail_msg("%s", why.text);
	return job;
}

static struct net *
net_of(const struct job_spec *job, uint32_t batch)
{
	struct net *net;
	const struct net_part whole = {.spec = &job->recipe.net,
	    .classes = 10,
	    .last = job->recipe.net.layer_count,
	    .max_batch = batch,
	    .contexts = 1,
	    .train = true,
	    .rules = job->recipe.rules,
	    .rule_count = job->recipe.rule_count};

	if (net_new_part(&net, &whole, &why))
		fail_msg("%s", why.text);
	net_init(net, 3);
	return net;
}

static enum err
run(struct net *net, const struct job_spec *job, const struct dataset *d, struct train_result *out)
{
	const struct train_config config = {
	    .local = &job->recipe.local, .data = &job->recipe.data, .round = 1, .seed = 11};

	return train_run(stepper_net(net), d, &config, out, &why);
}

static struct net *
trained(const struct document *document, const struct dataset *d, struct train_result *out)
{
	struct job_spec job = job_of(document);
	struct net *net = net_of(&job, 64);

	if (run(net, &job, d, out))
		fail_msg("%s", why.text);
	job_deinit(&job);
	return net;
}

static double
apart(const struct net *a, const struct net *b)
{
	double most = 0;

	for (size_t i = 0; i < net_tensors(a)->elements; i++)
		most = fmax(most,
		    fabs((double)net_params((struct net *)a)[i] -
			(double)net_params((struct net *)b)[i]));
	return most;
}

static struct dataset
digits(uint32_t count)
{
	struct dataset d;

	assert_int_equal(glyphs_make(&d, 1, 2, count, 0), ERR_OK);
	return d;
}

/* However a batch is cut, its gradient is that of the whole one: also where labels count unequally, and some pieces not at all. */
static void
pieces_are_the_batch(void **state)
{
#define WEIGHTS ", \"class_weights\": [1, 0, 0, 7.5, 0.2, 1, 1, 1, 3, 1]"
	static const char all[] = WEIGHTS ", \"ignore_index\": 0, \"label_smoothing\": 0.1";
	static const char *const models[] = {"", ", \"ignore_index\": 3", WEIGHTS, all};
	static const char *const ways[] = {"}}, \"parallel\": {\"micro_batch\": 1}",
	    "}}, \"parallel\": {\"micro_batch\": 5}",
	    "}}, \"parallel\": {\"micro_batch\": 3, \"groups\": 4}",
	    ", \"momentum\": 0.9}}, \"parallel\": {\"micro_batch\": 7}"};
	struct dataset d = digits(24);
	struct train_result r;

	(void)state;
	for (size_t m = 0; m < 4; m++) {
		struct document whole = {
		    "layernorm", models[m], "\"steps\": 1, \"batch\": 12", "}}"};
		struct net *one = trained(&whole, &d, &r);
		for (size_t w = 0; w < 5; w++) {
			struct document cut = whole;
			if (w < 4)
				cut.rest = ways[w];
			else
				cut.local = "\"steps\": 1, \"batch\": 4, \"accumulate\": 3";
			struct net *other = trained(&cut, &d, &r);
			if (!(apart(one, other) < 1e-6))
				fail_msg("%s %s: %g", models[m], cut.rest, apart(one, other));
			net_free(other);
		}
		net_free(one);
	}
	dataset_deinit(&d);
}

/* Labels that weigh nothing make no step: nothing moves, momentum and decay included, and none is counted. */
static void
nothing_counts(void **state)
{
	static const struct document all = {"layernorm", ", \"ignore_index\": 0",
	    "\"epochs\": 2, \"batch\": 4", ", \"momentum\": 0.9, \"weight_decay\": 0.1}}"};
	struct dataset d = digits(20);
	struct train_result r;

	(void)state;
	for (size_t i = 0; i < d.count; i++)
		d.labels[i] = i == 7 ? 4 : 0;
	struct net *net = trained(&all, &d, &r);
	assert_int_equal(r.steps, 2);
	assert_int_equal(r.examples, 8);
	assert_true(isfinite(r.loss));
	net_free(net);
	/* As many as are wanted, however many epochs that takes. */
	struct document steps = all;
	steps.local = "\"steps\": 3, \"batch\": 4, \"accumulate\": 2";
	net_free(trained(&steps, &d, &r));
	assert_int_equal(r.steps, 3);
	d.labels[7] = 0;
	struct job_spec job = job_of(&all);
	net = net_of(&job, 64);
	assert_int_equal(run(net, &job, &d, &r), ERR_INVALID);
	assert_non_null(strstr(why.text, "no label counts"));
	net_free(net);
	job_deinit(&job);
	dataset_deinit(&d);
}

/* A last example alone waits for the next epoch. */
static void
single_examples(void **state)
{
	static const struct {
		const char *norm, *local, *rest;
		uint32_t count;
		uint64_t steps, examples;
	} rows[] = {
	    {"batchnorm", "\"epochs\": 1, \"batch\": 10", "}}", 21, 2, 20},
	    {"batchnorm", "\"epochs\": 2, \"batch\": 10", "}}", 21, 4, 21},
	    {"batchnorm", "\"epochs\": 1, \"batch\": 10", "}}", 22, 3, 22},
	    {"batchnorm", "\"epochs\": 1, \"batch\": 10, \"accumulate\": 2", "}}", 21, 1, 20},
	    {"batchnorm", "\"epochs\": 1, \"batch\": 10, \"accumulate\": 2", "}}", 31, 2, 30},
	    {"batchnorm", "\"epochs\": 1, \"batch\": 7",
		"}}, \"parallel\": {\"micro_batch\": 3, \"groups\": 3}", 14, 2, 12},
	    {"batchnorm", "\"epochs\": 1, \"batch\": 0", "}}", 2, 1, 2},
	    {"batchnorm", "\"epochs\": 1, \"batch\": 0", "}}, \"parallel\": {\"micro_batch\": 4}",
		9, 1, 8},
	    {"layernorm", "\"epochs\": 1, \"batch\": 10", "}}", 21, 3, 21},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct document document = {rows[i].norm, "", rows[i].local, rows[i].rest};
		struct dataset d = digits(rows[i].count);
		struct job_spec job = job_of(&document);
		struct train_result r;
		net_free(trained(&document, &d, &r));
		assert_int_equal(r.steps, rows[i].steps);
		assert_int_equal(r.examples, rows[i].examples);
		assert_false(r.partial);
		assert_int_equal(training_steps(&job.recipe.local, rows[i].count), rows[i].steps);
		job_deinit(&job);
		dataset_deinit(&d);
	}
}

/* The variance that is counted is one of at least two values: pulled towards 0 by nothing. */
static void
variance(void **state)
{
	static const struct document document = {
	    "batchnorm", "", "\"epochs\": 60, \"batch\": 10", "}}"};
	struct dataset d = digits(21);
	struct train_result r;
	double sum[2] = {0};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct job_spec job = job_of(&document);
		job.recipe.local.optimizer.rate = 0;
		struct net *net = net_of(&job, 64);
		struct dataset some = dataset_window(&d, 0, i == 0 ? 20 : 21);
		assert_int_equal(run(net, &job, &some, &r), ERR_OK);
		const struct tensor *t = tensor_table_find(net_tensors(net), "norm.running_var");
		for (size_t k = 0; k < t->elements; k++)
			sum[i] += (double)net_params(net)[t->begin / sizeof(float) + k];
		net_free(net);
		job_deinit(&job);
	}
	dataset_deinit(&d);
	assert_true(sum[1] > 0.9 * sum[0] && sum[1] < 1.1 * sum[0]);
}

static const float *
values(const struct net *net, const char *name)
{
	const struct tensor *t = tensor_table_find(net_tensors(net), name);

	assert_non_null(t);
	return net_params((struct net *)net) + t->begin / sizeof(float);
}

/* What a batch norm counts behind frozen layers is the same whatever steps do with weights, and however their gradient is gathered. */
#define FROZEN ", \"tensors\": {\"fc1.*\": \"frozen\"}"
static void
counted_is_no_weight(void **state)
{
	static const char batch[] = "\"steps\": 5, \"batch\": 10";
	static const char clip[] = "\"steps\": 5, \"batch\": 10, \"clip_norm\": 1";
	static const char prox[] = "\"steps\": 5, \"batch\": 10, \"clip_norm\": 1, \"prox\": 0.5";
	static const struct document rows[][2] = {
	    {{"batchnorm", "", clip, ", \"weight_decay\": 0.1}}" FROZEN},
		{"batchnorm", "", batch, "}}" FROZEN}},
	    {{"batchnorm", "", batch,
		 ", \"weight_decay\": 0.1}}, \"parallel\": {\"micro_batch\": 5}" FROZEN},
		{"batchnorm", "", batch, "}}, \"parallel\": {\"micro_batch\": 5}" FROZEN}},
	    {{"batchnorm", "", prox, "}}" FROZEN}, {"batchnorm", "", batch, "}}" FROZEN}},
	    {{"batchnorm", "", clip, ", \"name\": \"adamw\", \"weight_decay\": 0.1}}" FROZEN},
		{"batchnorm", "", batch, "}}" FROZEN}},
	};
	struct dataset d = digits(40);
	struct train_result r;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct net *one = trained(&rows[i][0], &d, &r), *two = trained(&rows[i][1], &d, &r);
		assert_memory_equal(values(one, "norm.running_mean"),
		    values(two, "norm.running_mean"), 8 * sizeof(float));
		assert_memory_equal(values(one, "norm.running_var"),
		    values(two, "norm.running_var"), 8 * sizeof(float));
		net_free(one);
		net_free(two);
	}
	dataset_deinit(&d);
}

static const char *
missing(const struct document *d)
{
	struct job_spec job = job_of(d);
	const char *word = recipe_feature_missing(&job.recipe, codec_find_name("f32"),
	    (const char[][RECIPE_NAME_MAX]){
		"accumulate", "clip", "prox", "micro-batch", "networks", "groups", "figures"},
	    7);

	job_deinit(&job);
	return word ? word : "";
}

/* Agents of before would do otherwise, and get no such task; all others they get as ever. */
static void
features(void **state)
{
	static const char ignores[] = ", \"ignore_index\": 3";
	static const struct {
		struct document document;
		const char *word;
	} rows[] = {
	    {{"layernorm", ignores, "\"batch\": 4", "}}"}, ""},
	    {{"layernorm", "", "\"batch\": 4, \"accumulate\": 2", "}}"}, ""},
	    {{"layernorm", ignores, "\"batch\": 4, \"accumulate\": 2", "}}"}, "weighted-pieces"},
	    {{"layernorm", ", \"class_weights\": [1,1,1,1,1,1,1,1,1,2]", "\"batch\": 4",
		 "}}, \"parallel\": {\"micro_batch\": 2}"},
		"weighted-pieces"},
	    {{"layernorm", ignores, "\"batch\": 4", "}}, \"parallel\": {\"micro_batch\": 4}"}, ""},
	    {{"layernorm", ignores, "\"batch\": 0", "}}, \"parallel\": {\"micro_batch\": 4}"},
		"weighted-pieces"},
	    /* Of how many labels it counted, classes tell, and top-k does not. */
	    {{"layernorm", ignores, "\"batch\": 4",
		 "}}, \"evaluate\": {\"by\": \"devices\", \"figures\": [\"top1\", \"top3\"]}"},
		"weighted-pieces"},
	    {{"layernorm", ignores, "\"batch\": 4",
		 "}}, \"evaluate\": {\"by\": \"devices\", \"figures\": [\"top1\", \"classes\"]}"},
		""},
	    {{"layernorm", "", "\"batch\": 4",
		 "}}, \"evaluate\": {\"by\": \"devices\", \"figures\": [\"top1\"]}"},
		""},
	    {{"batchnorm", "", "\"batch\": 4", "}}"}, "batch-norms"},
	    {{"batchnorm", "", "\"batch\": 4", "}}, \"trainer\": \"mine\""}, ""},
	    {{"layernorm", ignores, "\"batch\": 4, \"accumulate\": 2", "}}, \"trainer\": \"mine\""},
		""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(missing(&rows[i].document), rows[i].word);
}

/* Behind a batch norm of more than one place an example alone will do; decay in gathered steps is what old agents do otherwise. */
static void
features_of_places(void **state)
{
	static const struct {
		const char *local;
		bool needs;
	} rows[] = {{"\"batch\": 1, \"optimizer\": {\"rate\": 0.1, \"weight_decay\": 0.1}", false},
	    {"\"batch\": 4, \"accumulate\": 2, \"optimizer\": {\"rate\": 0.1}", false},
	    {"\"batch\": 4, \"accumulate\": 2, \"optimizer\": {\"rate\": 0.1, \"weight_decay\": "
	     "0.1}",
		true},
	    {"\"batch\": 4, \"clip_norm\": 1, \"prox\": 0.1, \"optimizer\": {\"rate\": 0.1}", true},
	    {"\"batch\": 4, \"prox\": 0.1, \"optimizer\": {\"rate\": 0.1}", false}};
	static const char offered[][RECIPE_NAME_MAX] = {"accumulate", "clip", "prox"};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[1024];
		struct job_spec job;
		int n = snprintf(text, sizeof(text),
		    "{\"name\": \"n\", \"model\": {\"layers\": [{\"type\": \"batchnorm\"}, "
		    "{\"type\": "
		    "\"flatten\"}, {\"type\": \"linear\", \"out\": 2}], \"loss\": "
		    "\"cross_entropy\"}, "
		    "\"data\": {\"name\": \"d\", \"shape\": [1, 2, 2], \"classes\": 2}, "
		    "\"local\": {%s}, \"round\": {\"goal\": 1}}",
		    rows[i].local);
		if (job_parse(&job, text, (size_t)n, &why) || job_check(&job, &why))
			fail_msg("%s", why.text);
		assert_int_equal(job.recipe.local.least, 1);
		const char *word =
		    recipe_feature_missing(&job.recipe, codec_find_name("f32"), offered, 3);
		assert_string_equal(word ? word : "", rows[i].needs ? "batch-norms" : "");
		job_deinit(&job);
	}
}

/* Refused where new jobs are asked about, not where one of before is read. */
static void
refused(void **state)
{
	static const struct {
		struct document document;
		const char *said; /* NULL: taken */
	} rows[] = {
	    {{"batchnorm", "", "\"batch\": 1", "}}"},
		"local.batch: of 1 example batchnorm \"norm\""},
	    {{"batchnorm", "", "\"batch\": 1, \"accumulate\": 4", "}}"}, "local.batch: of 1"},
	    {{"batchnorm", "", "\"batch\": 8", "}}, \"parallel\": {\"micro_batch\": 1}"},
		"parallel.micro_batch: of 1"},
	    {{"batchnorm", "", "\"batch\": 0", "}}, \"parallel\": {\"micro_batch\": 1}"},
		"parallel.micro_batch: of 1"},
	    {{"batchnorm", "", "\"batch\": 2", "}}"}, NULL},
	    {{"batchnorm", "", "\"batch\": 1", "}}, \"trainer\": \"mine\""}, NULL},
	    {{"layernorm", "", "\"batch\": 1", "}}"}, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct job_spec job = job_of(&rows[i].document);
		enum err e = job_check(&job, &why);
		assert_int_equal(e, rows[i].said ? ERR_INVALID : ERR_OK);
		if (rows[i].said && !strstr(why.text, rows[i].said))
			fail_msg("%s", why.text);
		assert_int_equal(recipe_min_examples(&job.recipe, false), job.recipe.local.least);
		assert_int_equal(recipe_min_examples(&job.recipe, true), 1);
		job_deinit(&job);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(pieces_are_the_batch),
	    cmocka_unit_test(nothing_counts),
	    cmocka_unit_test(single_examples),
	    cmocka_unit_test(variance),
	    cmocka_unit_test(counted_is_no_weight),
	    cmocka_unit_test(features),
	    cmocka_unit_test(features_of_places),
	    cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
