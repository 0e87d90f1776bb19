/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "codec_elements.h"
#include "counts.h"
#include "manifest.h"
#include "planned.h"
#include "trial.h"

#define LOCAL(tensors, local, more) \
	"{\"name\":\"t\",\"seed\":1,\"model\":{\"layers\":[{\"type\":\"linear\",\"name\":\"fc\"," \
	"\"out\":2}]," \
	"\"loss\":\"cross_entropy\"},\"tensors\":{" tensors "}," \
	"\"data\":{\"name\":\"points\",\"shape\":[2],\"classes\":[\"a\",\"b\"],\"validation\":0." \
	"2}," \
	"\"local\":{" local "},\"round\":{\"goal\":1}" more "}"
#define JOB(tensors, rate, more) \
	LOCAL(tensors, \
	    "\"epochs\":5,\"batch\":10,\"optimizer\":{\"name\":\"sgd\",\"rate\":" rate "}", more)
#define OF_LOSS(keys, more) \
	"{\"name\":\"t\",\"seed\":1,\"model\":{\"layers\":[{\"type\":\"linear\",\"name\":\"fc\"," \
	"\"out\":2}],\"loss\":\"cross_entropy\"" keys "}," \
	"\"data\":{\"name\":\"points\",\"shape\":[2],\"classes\":[\"a\",\"b\"],\"validation\":0." \
	"2},\"local\":{\"epochs\":1,\"batch\":10,\"optimizer\":{\"name\":\"sgd\",\"rate\":0.1}}," \
	"\"round\":{\"goal\":1}" more "}"
#define BY_DEVICES ",\"evaluate\":{\"by\":\"devices\"}"

static struct why why;

static void
test_trains(void **state)
{
	struct trial t;
	uint8_t base[24], first[24];
	struct work_delta source;
	float delta[6];

	(void)state;
	trial_init(&t, JOB("", "0.1", ""), "");
	memcpy(base, t.work.weights, 24);
	assert_int_equal(trainer_builtin_run(&t.in, &t.out, &why), ERR_OK);
	assert_int_equal(t.out.finish.examples, 40);
	assert_int_equal(t.out.finish.steps, 20);
	assert_true(t.out.finish.normaliser == 20.0);
	assert_true(t.out.finish.loss < 0.7 && t.out.finish.accuracy > 0.5);
	/* Five passes over 40 examples. */
	assert_true(t.out.has_report && !t.out.report.has_evaluate);
	assert_true(t.out.report.trained.told && t.out.report.trained.loss_count == 200);
	assert_int_equal(t.out.report.trained.labels, 200);
	assert_true(t.out.finish.accuracy == messages_report_accuracy(&t.out.report.trained));
	assert_false(t.out.finish.partial);
	memcpy(first, t.work.weights, 24);
	assert_memory_not_equal(first, base, 24);
	/* Weights after minus weights before, never the other sign. */
	assert_int_equal(work_delta_open(&source, &t.work, &why), ERR_OK);
	const struct codec_elements values = work_delta_values(&source);
	assert_int_equal(values.read(values.context, 0, 6, delta), ERR_OK);
	work_delta_close(&source);
	for (size_t i = 0; i < 6; i++) {
		float a, b;
		memcpy(&a, first + 4 * i, 4);
		memcpy(&b, base + 4 * i, 4);
		assert_true(delta[i] == a - b);
	}
	/* The same of a base in memory, whose file may be gone. */
	float again[6], *bad = (float *)(void *)(t.work.weights + 8);
	struct work held = t.work;
	held.base = base;
	held.path[0] = '\0';
	assert_int_equal(work_delta_open(&source, &held, &why), ERR_OK);
	assert_int_equal(values.read(values.context, 0, 6, again), ERR_OK);
	assert_memory_equal(delta, again, sizeof(delta));
	*bad = INFINITY;
	assert_int_equal(values.read(values.context, 0, 6, again), ERR_NUMERIC);
	work_delta_close(&source);
	/* The same base, data and device: the same bits. */
	memcpy(t.work.weights, base, 24);
	assert_int_equal(trainer_builtin_run(&t.in, &t.out, &why), ERR_OK);
	assert_memory_equal(first, t.work.weights, 24);
	trial_deinit(&t);
}

static void
test_frozen_stay(void **state)
{
	struct trial t;
	uint8_t base[24];

	(void)state;
	trial_init(&t, JOB("\"*.weight\":\"frozen\"", "0.1", ""), "");
	assert_int_equal(t.work.table.elements, 2);
	memcpy(base, t.work.weights, 24);
	assert_int_equal(trainer_builtin_run(&t.in, &t.out, &why), ERR_OK);
	assert_memory_equal(base, t.work.weights, 16);
	assert_memory_not_equal(base + 16, t.work.weights + 16, 8);
	trial_deinit(&t);
}

static void
test_evaluates_the_base(void **state)
{
	struct trial t;

	(void)state;
	trial_init(&t, JOB("", "0.1", BY_DEVICES), "");
	assert_int_equal(trainer_builtin_run(&t.in, &t.out, &why), ERR_OK);
	assert_true(t.out.has_report && t.out.report.has_evaluate);
	assert_int_equal(t.out.report.eval_examples, 10);
	double before = t.out.report.eval_loss;
	/* A second round starts from better weights, and its report is about those. */
	assert_int_equal(trainer_builtin_run(&t.in, &t.out, &why), ERR_OK);
	assert_true(t.out.report.eval_loss < before);
	assert_true(t.out.report.eval_accuracy > 0.9);
	trial_deinit(&t);
}

/* Labels that are ignored, or weigh nothing, count in no figure. */
static void
test_what_counts(void **state)
{
	struct trial t;

	(void)state;
	trial_init(&t, OF_LOSS(",\"ignore_index\":1", BY_DEVICES), "");
	assert_int_equal(trainer_builtin_run(&t.in, &t.out, &why), ERR_OK);
	const struct report_counted *c = &t.out.report.trained, *v = &t.out.report.evaluated;
	assert_true(c->labels < 40 && c->loss_count == (double)c->labels);
	assert_true(v->told && v->labels < 10 && v->loss_count == (double)v->labels);
	assert_true(t.out.report.eval_accuracy == messages_report_accuracy(v));
	trial_deinit(&t);
	trial_init(&t, OF_LOSS(",\"class_weights\":[0.5,0]", ""), "");
	assert_int_equal(trainer_builtin_run(&t.in, &t.out, &why), ERR_OK);
	assert_int_equal(t.out.report.trained.labels, 40);
	assert_true(c->loss_count > 0 && c->loss_count < 20);
	trial_deinit(&t);
}

/* Its report is one that the coordinator takes, with counts of the labels that count: in a task that trains, and in one that evaluates. */
static void
test_figures_of_what_counts(void **state)
{
#define FIGURES \
	",\"evaluate\":{\"by\":\"devices\",\"figures\":[\"classes\",\"confusion\",\"top1\"," \
	"\"auc\"]}"
	(void)state;
	for (int kind = TASK_TRAIN; kind <= TASK_EVALUATE; kind++) {
		struct trial t;
		struct counts *taken = NULL;
		struct buf text;
		trial_init(&t, OF_LOSS(",\"ignore_index\":1", FIGURES), "");
		t.work.task.kind = (enum task_kind)kind;
		assert_int_equal(trainer_builtin_run(&t.in, &t.out, &why), ERR_OK);
		const struct recipe *recipe = &t.work.task.recipe;
		const uint64_t labels = t.out.report.evaluated.labels;
		assert_true(labels > 0 && labels < t.out.report.eval_examples);
		buf_init(&text, REPORT_MAX);
		assert_int_equal(messages_report_encode(&text, &t.out.report), ERR_OK);
		if (messages_report_counts(&taken, &recipe->figures, recipe->data.class_count,
			buf_str(&text), text.len, &why))
			fail_msg("%s", why.text);
		assert_int_equal(taken->examples, labels);
		assert_int_equal(taken->classes[0].examples, labels);
		assert_int_equal(taken->classes[1].examples, 0);
		assert_int_equal(taken->top[0], t.out.report.evaluated.right);
		counts_free(taken);
		buf_deinit(&text);
		counts_free(t.out.counts);
		trial_deinit(&t);
	}
}

/* A task in which nothing counts is given back before anything is trained. */
static void
test_nothing_counts(void **state)
{
	static const char *const jobs[] = {OF_LOSS(",\"ignore_index\":0", ""),
	    OF_LOSS(",\"class_weights\":[0,1]", ""), OF_LOSS(",\"ignore_index\":0", BY_DEVICES)};
	struct trial t;

	(void)state;
	for (size_t i = 0; i < sizeof(jobs) / sizeof(*jobs); i++) {
		trial_init(&t, jobs[i], "");
		int32_t labels[50] = {0};
		struct dataset train = t.train;
		train.labels = labels;
		t.in.train = &train;
		if (i == 2)
			t.work.task.kind = TASK_EVALUATE;
		struct dataset held = t.validation;
		held.labels = labels;
		t.in.validation = &held;
		assert_int_equal(trainer_builtin_run(&t.in, &t.out, &why), ERR_INVALID);
		assert_int_equal(t.out.abort, ABORT_DATA_MISMATCH);
		assert_non_null(strstr(why.text, "no label counts"));
		trial_deinit(&t);
	}
}

static bool
yes(void *context)
{
	(void)context;
	return true;
}

static void
test_limits(void **state)
{
	struct trial t;

	(void)state;
	trial_init(&t, JOB("", "0.1", ""), "[limits]\nepochs = 2\n");
	assert_int_equal(trainer_builtin_run(&t.in, &t.out, &why), ERR_OK);
	assert_int_equal(t.out.finish.steps, 8);
	assert_true(t.out.finish.partial);
	t.in.stop = yes;
	assert_int_equal(trainer_builtin_run(&t.in, &t.out, &why), ERR_OK);
	assert_int_equal(t.out.finish.steps, 1);
	assert_true(t.out.finish.partial);
	trial_deinit(&t);
}

/* A deadline that comes first: what was done is sent, and counts for so many of the examples. */
static void
test_out_of_time(void **state)
{
	struct trial t;

	(void)state;
	trial_init(&t,
	    LOCAL("", "\"epochs\":1000000,\"batch\":10,\"optimizer\":{\"rate\":0.001}", ""), "");
	t.in.seconds = 0.2;
	assert_int_equal(trainer_builtin_run(&t.in, &t.out, &why), ERR_OK);
	assert_true(t.out.finish.partial);
	assert_true(t.out.finish.steps >= 1 && t.out.finish.steps < 4000000);
	double share = (double)t.out.finish.steps / 4000000;
	uint64_t want = (uint64_t)(40 * share);
	assert_int_equal(t.out.finish.examples, want > 1 ? want : 1);
	assert_true(t.out.finish.normaliser == (double)t.out.finish.steps);
	/* Not even a step fits: one is done nevertheless. */
	t.in.seconds = 1e-9;
	assert_int_equal(trainer_builtin_run(&t.in, &t.out, &why), ERR_OK);
	assert_int_equal(t.out.finish.steps, 1);
	assert_int_equal(t.out.finish.examples, 1);
	trial_deinit(&t);
}

/* The manifest names the optimizer, and what it keeps counts against the owner's limit: 24 bytes a vector here, in whole cache lines. */
static void
test_optimizers(void **state)
{
	static const struct {
		const char *job;
		uint16_t id;
	} rows[] = {
	    {LOCAL("", "\"optimizer\":{\"rate\":0.01,\"momentum\":0.5}", ""), MANIFEST_SGD},
	    {LOCAL("", "\"optimizer\":{\"name\":\"adam\",\"rate\":0.01}", ""), MANIFEST_ADAM},
	    {LOCAL("", "\"optimizer\":{\"name\":\"adamw\",\"rate\":0.01},\"prox\":1", ""),
		MANIFEST_ADAMW},
	};
	struct trial t;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		trial_init(&t, rows[i].job, "");
		assert_int_equal(trainer_builtin_run(&t.in, &t.out, &why), ERR_OK);
		assert_int_equal(t.out.finish.optimizer, rows[i].id);
		assert_int_equal(t.out.finish.steps, 4);
		trial_deinit(&t);
	}
	uint64_t least[2] = {0, 0};
	for (int i = 0; i < 2; i++) {
		trial_init(
		    &t, i ? rows[2].job : LOCAL("", "\"optimizer\":{\"rate\":0.01}", ""), "");
		enum err e = ERR_LIMIT;
		for (uint64_t bytes = 4; e; bytes += 4) {
			t.settings->memory_bytes = bytes;
			e = trainer_builtin_run(&t.in, &t.out, &why);
			assert_true(e == ERR_OK || e == ERR_LIMIT);
			assert_true(!e || t.out.abort == ABORT_OUT_OF_MEMORY);
			least[i] = bytes;
			/* They are gone where it failed on the way. */
			if (!t.work.weights)
				t.work.weights = calloc(1, (size_t)t.work.table.bytes);
		}
		trial_deinit(&t);
	}
	assert_int_equal(least[1], least[0] + 4 * 64);
}

/* The weights; with control variates also what is added to gradients. Nothing where a program has it. */
static void
test_memory_loading(void **state)
{
#define UPLOAD(upload) LOCAL("", "\"optimizer\":{\"rate\":0.01}", ",\"upload\":{" upload "}")
	static const struct {
		const char *job;
		uint64_t copies;
	} rows[] = {
	    {UPLOAD("\"codec\":\"f32\""), 1},
	    {UPLOAD("\"codec\":\"sparse\""), 1},
	    {LOCAL("", "\"optimizer\":{\"rate\":0.01},\"control_variates\":{\"devices\":2}", ""),
		2},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct trial t;
		trial_init(&t, rows[i].job, "");
		for (unsigned less = 0; less < 2; less++) {
			struct work w = {.task = t.work.task};
			enum err e = work_load(&w, t.path, 24 * rows[i].copies - less, &why);
			if (e != (less ? ERR_LIMIT : ERR_OK))
				fail_msg("row %zu, %u less: %s", i, less, err_name(e));
			memset(&w.task, 0, sizeof(w.task));
			work_deinit(&w);
		}
		struct work w = {.task = t.work.task, .streams = true};
		assert_int_equal(work_load(&w, t.path, 1, &why), ERR_OK);
		assert_null(w.weights);
		memset(&w.task, 0, sizeof(w.task));
		work_deinit(&w);
		trial_deinit(&t);
	}
}

static void
test_not_finite(void **state)
{
	struct trial t;

	(void)state;
	trial_init(&t, JOB("", "1000000", ""), "");
	for (size_t i = 0; i < 80; i++)
		t.train.floats[i] = 1e38f;
	assert_int_equal(trainer_builtin_run(&t.in, &t.out, &why), ERR_NUMERIC);
	assert_int_equal(t.out.abort, ABORT_NOT_FINITE);
	trial_deinit(&t);
}

static void
test_no_examples(void **state)
{
	struct trial t;
	static const struct dataset none;

	(void)state;
	trial_init(&t, JOB("", "0.1", ""), "");
	t.in.train = &none;
	assert_int_equal(trainer_builtin_run(&t.in, &t.out, &why), ERR_NOTFOUND);
	assert_int_equal(t.out.abort, ABORT_NO_DATA);
	trial_deinit(&t);
}

/* Data that the network cannot learn from is no failure of the trainer, in a task of either kind. */
static void
test_mismatch(void **state)
{
	struct trial t;

	(void)state;
	trial_init(&t, JOB("", "0.1", BY_DEVICES), "");
	t.train.labels[39] = 2;
	assert_false(planned_suits(&t.work.task.recipe, &t.train, &why));
	assert_string_equal(why.text, "label 2 does not fit the network's 2 outputs");
	assert_int_equal(trainer_builtin_run(&t.in, &t.out, &why), ERR_INVALID);
	assert_int_equal(t.out.abort, ABORT_DATA_MISMATCH);
	t.train.labels[39] = 1;
	assert_true(planned_suits(&t.work.task.recipe, &t.train, &why));
	t.validation.labels[9] = 2;
	assert_int_equal(trainer_builtin_run(&t.in, &t.out, &why), ERR_INVALID);
	assert_int_equal(t.out.abort, ABORT_DATA_MISMATCH);
	t.work.task.kind = TASK_EVALUATE;
	assert_int_equal(trainer_builtin_run(&t.in, &t.out, &why), ERR_INVALID);
	assert_int_equal(t.out.abort, ABORT_DATA_MISMATCH);
	/* A model that is not the network's is. */
	t.validation.labels[9] = 1;
	t.work.table.items[0].shape[0]++;
	assert_int_equal(trainer_builtin_run(&t.in, &t.out, &why), ERR_INVALID);
	assert_int_equal(t.out.abort, ABORT_TRAINER_FAILED);
	trial_deinit(&t);
}

/* Where a batch norm has one value of each channel in an example: one is too few, and a job of before may ask for no more at a time. */
static void
test_single_example(void **state)
{
	static const struct {
		size_t count;
		uint32_t batch;
		enum abort_reason abort;
		const char *said;
	} rows[] = {{1, 10, ABORT_NO_DATA, "1 example to train on: a batch norm"},
	    {1, 0, ABORT_NO_DATA, "1 example to train on: a batch norm"},
	    {40, 1, ABORT_UNSUPPORTED, "batches of 1 example: a batch norm"},
	    {2, 10, ABORT_NONE, NULL}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct trial t;
		trial_init(&t, JOB("", "0.1", ""), "");
		struct dataset some = dataset_window(&t.train, 0, rows[i].count);
		t.in.train = &some;
		t.work.task.recipe.local.least = 2;
		t.work.task.recipe.local.batch = rows[i].batch;
		enum err e = trainer_builtin_run(&t.in, &t.out, &why);
		assert_int_equal(e != ERR_OK, rows[i].said != NULL);
		assert_int_equal(t.out.abort, rows[i].abort);
		if (rows[i].said)
			assert_non_null(strstr(why.text, rows[i].said));
		trial_deinit(&t);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_trains),
	    cmocka_unit_test(test_mismatch),
	    cmocka_unit_test(test_frozen_stay),
	    cmocka_unit_test(test_evaluates_the_base),
	    cmocka_unit_test(test_what_counts),
	    cmocka_unit_test(test_figures_of_what_counts),
	    cmocka_unit_test(test_nothing_counts),
	    cmocka_unit_test(test_limits),
	    cmocka_unit_test(test_out_of_time),
	    cmocka_unit_test(test_optimizers),
	    cmocka_unit_test(test_memory_loading),
	    cmocka_unit_test(test_not_finite),
	    cmocka_unit_test(test_no_examples),
	    cmocka_unit_test(test_single_example),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
