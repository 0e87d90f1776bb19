/* stages: gcc clang openssl address */
/* What a program says of its work, and asks between two steps: the calls of rivulet.h that need no coordinator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backoff.h"
#include "finish.h"
#include "handle_inside.h"

/* Of 64-bit machines with the System V ABI. A new number is a new soname, see the Makefile: who was built for the old one would read
 * past the end of its structs. */
#define ABI_64 UINT64_C(0x55ee924846216d7b)

static struct finish finish;
static struct report report;
static struct why why;

static void
structs_stay(void **state)
{
	(void)state;
	if (sizeof(void *) != 8)
		skip();
	assert_int_equal(rivulet_abi(), ABI_64);
}

/* Of rivulet_join, which rivulet_abi leaves alone so that packages made for an older library keep working; tests/python/test_join.py has
 * the same figures. */
static void
structs_of_joining_stay(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct rivulet_joined), 6652);
	assert_int_equal(offsetof(struct rivulet_joined, name), 73);
	assert_int_equal(offsetof(struct rivulet_joined, home), 2553);
	if (sizeof(void *) != 8)
		skip();
	assert_int_equal(sizeof(struct rivulet_join_options), 48);
	assert_int_equal(offsetof(struct rivulet_join_options, cancel), 32);
}

static int
asked(void *context)
{
	++*(int *)context;
	return 1;
}

static void
joining_fails_with_a_reason(void **state)
{
	struct rivulet_joined joined = {.url_count = 7};
	int count = 0;
	struct rivulet_join_options o = {
	    .home = "/proc/nowhere", .cancel = asked, .context = &count};
	char text[512];

	(void)state;
	assert_int_equal(rivulet_join(&joined, &o, text, sizeof(text)), RIVULET_INVALID);
	assert_true(*text && joined.url_count == 0);
	o.url = "https://a/path";
	assert_int_equal(rivulet_join(&joined, &o, NULL, 0), RIVULET_INVALID);
	o.url = "localhost:1";
	assert_int_equal(rivulet_join(&joined, &o, text, sizeof(text)), RIVULET_NOTFOUND);
	assert_string_equal(text, "a token is needed");
	o.token = " \n";
	assert_int_equal(rivulet_join(&joined, &o, text, 7), RIVULET_INVALID);
	assert_string_equal(text, "that i");
	assert_int_equal(count, 0);
}

/* As the program of an older header leaves it. */
static void
zeros_mean_what_they_did(void **state)
{
	const struct rivulet_result r = {.examples = 500, .steps = 20, .loss = 0.25};

	(void)state;
	assert_int_equal(finish_of(&finish, &report, &r, &why), ERR_OK);
	assert_int_equal(finish.optimizer, MANIFEST_EXTERNAL);
	assert_true(finish.normaliser == 20 && finish.loss == 0.25 && finish.accuracy == 0);
	assert_int_equal(finish.examples, 500);
	assert_false(finish.partial);
	assert_null(finish.report);
}

static void
everything_is_said(void **state)
{
	const struct rivulet_metric metrics[] = {{"perplexity", 12.5}, {"a b", -1}};
	struct rivulet_result r = {.examples = 1,
	    .steps = 2,
	    .partial = 7,
	    .optimizer = RIVULET_ADAMW,
	    .normaliser = 0.5,
	    .evaluate = {.examples = 9, .loss = NAN, .accuracy = 0.75},
	    .metrics = metrics,
	    .metric_count = 2};
	static const uint16_t ids[] = {
	    MANIFEST_EXTERNAL, MANIFEST_SGD, MANIFEST_ADAM, MANIFEST_ADAMW};

	(void)state;
	for (int i = RIVULET_OWN; i <= RIVULET_ADAMW; i++) {
		r.optimizer = i;
		assert_int_equal(finish_of(&finish, &report, &r, &why), ERR_OK);
		assert_int_equal(finish.optimizer, ids[i]);
	}
	assert_true(finish.partial && finish.normaliser == 0.5);
	assert_ptr_equal(finish.report, &report);
	assert_true(report.has_evaluate && report.eval_accuracy == 0.75);
	assert_true(isnan(report.eval_loss));
	assert_int_equal(report.eval_examples, 9);
	assert_int_equal(report.metric_count, 2);
	assert_string_equal(report.metrics[0].name, "perplexity");
	assert_true(report.metrics[1].value == -1);
	/* Metrics alone are a report, too. */
	r.evaluate.examples = 0;
	assert_int_equal(finish_of(&finish, &report, &r, &why), ERR_OK);
	assert_ptr_equal(finish.report, &report);
	assert_false(report.has_evaluate);
}

static void
refuse(struct rivulet_result r, enum err e, const char *says)
{
	assert_int_equal(finish_of(&finish, &report, &r, &why), e);
	if (!strstr(why.text, says))
		fail_msg("\"%s\" does not say \"%s\"", why.text, says);
}

static void
wrong_results(void **state)
{
	struct rivulet_metric many[RIVULET_METRICS_MAX + 1];
	char names[RIVULET_METRICS_MAX + 1][8], longest[RECIPE_NAME_MAX + 1];
	struct rivulet_result r = {.examples = 1, .steps = 1, .metrics = many};

	(void)state;
	for (size_t i = 0; i <= RIVULET_METRICS_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "m%zu", i);
		many[i] = (struct rivulet_metric){names[i], 1};
	}
	r.metric_count = RIVULET_METRICS_MAX;
	assert_int_equal(finish_of(&finish, &report, &r, &why), ERR_OK);
	r.metric_count++;
	refuse(r, ERR_LIMIT, "65 metrics");
	r.metric_count = 2;
	many[1].name = "m0";
	refuse(r, ERR_INVALID, "\"m0\" comes twice");
	many[1].name = NULL;
	refuse(r, ERR_INVALID, "name");
	many[1].name = "";
	refuse(r, ERR_INVALID, "name");
	many[1].name = "line\nbreak";
	refuse(r, ERR_INVALID, "control");
	memset(longest, 'x', sizeof(longest));
	longest[RECIPE_NAME_MAX] = '\0';
	many[1].name = longest;
	refuse(r, ERR_INVALID, "1 to 63 bytes");
	many[1] = (struct rivulet_metric){"inf", INFINITY};
	refuse(r, ERR_NUMERIC, "\"inf\" is not finite");
	r.metric_count = 0;
	r.evaluate = (struct rivulet_evaluation){.examples = 1, .accuracy = 1.5};
	refuse(r, ERR_INVALID, "1.5");
	r.evaluate = (struct rivulet_evaluation){.examples = 1, .loss = -INFINITY};
	refuse(r, ERR_NUMERIC, "evaluation");
	r.evaluate.examples = 0;
	r.optimizer = RIVULET_ADAMW + 1;
	refuse(r, ERR_INVALID, "optimizer 4");
	r.optimizer = -1;
	refuse(r, ERR_INVALID, "optimizer -1");
}

static int
cancelled(void *context)
{
	return *(int *)context;
}

static void
when_to_stop(void **state)
{
	int cancel = 0;
	struct rivulet r = {.cancel = cancelled, .context = &cancel};

	(void)state;
	assert_int_equal(rivulet_stop_now(&r), RIVULET_STATE);
	r.has_work = true;
	r.stop_at = backoff_now() + 1000;
	assert_int_equal(rivulet_stop_now(&r), RIVULET_OK);
	r.stop_at = backoff_now();
	assert_int_equal(rivulet_stop_now(&r), RIVULET_TIMEOUT);
	cancel = 1;
	assert_int_equal(rivulet_stop_now(&r), RIVULET_STOPPED);
	r.cancel = NULL;
	assert_int_equal(rivulet_stop_now(&r), RIVULET_TIMEOUT);
}

/* The agent's share, and never nothing. */
static void
budget(void **state)
{
	struct work w = {.task = {.deadline_s = 100}, .came_at = backoff_now()};

	(void)state;
	assert_true(fabs(work_budget(&w, 0) - 90) < 5);
	assert_true(work_budget(&w, 3) == 3);
	w.came_at -= 200;
	assert_true(work_budget(&w, 0) > 0 && work_budget(&w, 3) < 0.01);
}

/* What was said of figures that were refused is not said of the next. */
static void
counts_are_taken_back(void **state)
{
	struct rivulet r = {.lock = -1};
	const struct report_counted *c = r.counted;

	(void)state;
	assert_int_equal(rivulet_count(&r, RIVULET_TRAIN, RIVULET_UNTOLD, 0, 0), RIVULET_STATE);
	r.has_work = true;
	for (int kind = RIVULET_TRAIN; kind <= RIVULET_EVALUATE; kind++) {
		assert_int_equal(rivulet_count(&r, kind, 0, 5, 2), RIVULET_OK);
		assert_true(c[kind].told && c[kind].has_labels && c[kind].right == 2);
		assert_int_equal(rivulet_count(&r, kind, -2, 5, 2), RIVULET_INVALID);
		assert_true(c[kind].told);
		assert_int_equal(rivulet_count(&r, kind, RIVULET_UNTOLD, 7, 9), RIVULET_OK);
		assert_false(c[kind].told || c[kind].has_labels);
	}
}

static void
weights_outlive_their_task(void **state)
{
	struct rivulet r = {.lock = -1};

	(void)state;
	assert_null(rivulet_hold(&r));
	r.has_work = true;
	r.work.weights = malloc(8);
	memcpy(r.work.weights, "weights", 8);
	char *held = rivulet_hold(&r);
	assert_ptr_equal(held, r.work.weights);
	assert_null(rivulet_hold(&r));
	handle_drop(&r);
	assert_string_equal(held, "weights");
	rivulet_release(held);
	rivulet_release(NULL);
	/* The next task's are the library's again. */
	r.has_work = true;
	r.work.weights = malloc(8);
	handle_drop(&r);
	assert_null(r.work.weights);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(structs_stay),
	    cmocka_unit_test(structs_of_joining_stay),
	    cmocka_unit_test(joining_fails_with_a_reason),
	    cmocka_unit_test(zeros_mean_what_they_did), cmocka_unit_test(everything_is_said),
	    cmocka_unit_test(wrong_results), cmocka_unit_test(when_to_stop),
	    cmocka_unit_test(budget), cmocka_unit_test(counts_are_taken_back),
	    cmocka_unit_test(weights_outlive_their_task)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
