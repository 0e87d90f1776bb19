#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "trial.h"

#define JOB(tensors, rate, more) \
	"{\"name\":\"t\",\"seed\":1,\"model\":{\"layers\":[{\"type\":\"linear\",\"name\":\"fc\"," \
	"\"out\":2}]," \
	"\"loss\":\"cross_entropy\"},\"tensors\":{" tensors "}," \
	"\"data\":{\"name\":\"points\",\"shape\":[2],\"classes\":[\"a\",\"b\"],\"validation\":0." \
	"2}," \
	"\"local\":{\"epochs\":5,\"batch\":10,\"optimizer\":{\"name\":\"sgd\",\"rate\":" rate \
	"}},\"round\":{\"goal\":1}" more "}"
#define BY_DEVICES ",\"evaluate\":{\"by\":\"devices\"}"

static struct why why;

static void
test_trains(void **state)
{
	struct trial t;
	uint8_t base[24], first[24];
	float *delta;

	(void)state;
	trial_init(&t, JOB("", "0.1", ""), "");
	memcpy(base, t.work.weights, 24);
	assert_int_equal(trainer_builtin_run(&t.in, &t.out, &why), ERR_OK);
	assert_int_equal(t.out.finish.examples, 40);
	assert_int_equal(t.out.finish.steps, 20);
	assert_true(t.out.finish.normaliser == 20.0);
	assert_true(t.out.finish.loss < 0.7 && t.out.finish.accuracy > 0.5);
	assert_false(t.out.has_report);
	assert_false(t.out.finish.partial);
	memcpy(first, t.work.weights, 24);
	assert_memory_not_equal(first, base, 24);
	/* Weights after minus weights before, never the other sign. */
	assert_int_equal(work_delta(&t.work, &delta, &why), ERR_OK);
	for (size_t i = 0; i < 6; i++) {
		float a, b;
		memcpy(&a, first + 4 * i, 4);
		memcpy(&b, base + 4 * i, 4);
		assert_true(delta[i] == a - b);
	}
	free(delta);
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

static void
test_not_finite(void **state)
{
	struct trial t;

	(void)state;
	trial_init(&t, JOB("", "1000000", ""), "");
	for (size_t i = 0; i < 80; i++)
		t.train.floats[i] = 1e38f;
	assert_int_equal(trainer_builtin_run(&t.in, &t.out, &why), ERR_NUMERIC);
	assert_string_equal(t.out.abort, "not-finite");
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
	assert_string_equal(t.out.abort, "no-data");
	trial_deinit(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_trains),
	    cmocka_unit_test(test_frozen_stay),
	    cmocka_unit_test(test_evaluates_the_base),
	    cmocka_unit_test(test_limits),
	    cmocka_unit_test(test_not_finite),
	    cmocka_unit_test(test_no_examples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
