/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "metric.h"
#include "prng.h"
#include "recipe.h"

/* A job of the built-in trainer that takes `epochs` passes in batches of 10. */
static struct job_spec
spec_of(double epochs)
{
	struct job_spec s = {.recipe = {.builtin = true}};

	s.recipe.local = (struct local_spec){
	    .unit = LOCAL_EPOCHS, .amount = epochs, .batch = 10, .accumulate = 1};
	s.recipe.data.dims = 1;
	s.recipe.data.shape[0] = 4;
	return s;
}

static struct metric_training
training(uint64_t examples, double loss, double loss_count, uint64_t right, uint64_t labels)
{
	return (struct metric_training){.examples = examples,
	    .steps = (examples + 9) / 10,
	    .loss = loss,
	    .accuracy = labels > 0 ? (double)right / (double)labels : (double)NAN,
	    .says = {true, loss_count, true, labels, right}};
}

/* As versions before say it. */
static struct metric_training
silent(uint64_t examples, double loss, double accuracy)
{
	return (struct metric_training){
	    .examples = examples, .steps = 1, .loss = loss, .accuracy = accuracy};
}

static struct metric_figures
figures(const struct job_spec *spec, const struct metric_training *t, size_t count)
{
	struct metric_figures f;

	assert_int_equal(metric_training_figures(&f, spec, t, count), ERR_OK);
	return f;
}

static bool
near(double a, double b)
{
	return fabs(a - b) < 1e-12;
}

static void
sums_over_what_counted(void **state)
{
	const struct job_spec spec = spec_of(1);
	const struct metric_training t[] = {
	    training(100, 3, 1, 1, 1), training(100, 1, 99, 33, 99), training(1000, 0, 0, 0, 0)};

	(void)state;
	struct metric_figures f = figures(&spec, t, 3);
	assert_true(near(f.loss, 1.02) && near(f.accuracy, 0.34));
	f = figures(&spec, t + 2, 1);
	assert_true(isnan(f.loss) && isnan(f.accuracy));
	f = figures(&spec, t, 0);
	assert_true(isnan(f.loss) && isnan(f.accuracy));
}

/* Numbers have no labels, and a program may not know them. */
static void
only_a_loss(void **state)
{
	const struct job_spec spec = spec_of(1);
	struct metric_training t[] = {training(10, 4, 10, 0, 0), training(30, 8, 30, 0, 0)};

	(void)state;
	struct metric_figures f = figures(&spec, t, 2);
	assert_true(near(f.loss, 7) && isnan(f.accuracy));
	t[0].says.has_labels = t[1].says.has_labels = false;
	t[0].accuracy = 1;
	t[1].accuracy = 0.5;
	assert_true(near(figures(&spec, t, 2).accuracy, 0.625));
}

/* Who says nothing weighs his examples among others like him, to the bit as ever; among others as much as they do for each example. */
static void
who_does_not_say(void **state)
{
	const struct job_spec spec = spec_of(5);
	struct metric_training t[] = {
	    silent(30, 1.1, 0.3), silent(10, 5.3, 0.9), silent(60, 2.7, NAN)};

	(void)state;
	struct metric_figures f = figures(&spec, t, 3);
	assert_true(f.loss == (30 * 1.1 + 10 * 5.3 + 60 * 2.7) / 100);
	assert_true(f.accuracy == (30 * 0.3 + 10 * 0.9) / 40);
	t[0] = training(30, 1, 150, 75, 150);
	t[1] = silent(10, 5, 0.9);
	f = figures(&spec, t, 2);
	assert_true(near(f.loss, 2) && near(f.accuracy, 0.6));
}

/* Nobody counts for more than so many examples can: neither an example too often nor, without a text, more labels than examples. */
static void
no_more_than_can_be(void **state)
{
	struct job_spec spec = spec_of(3);
	struct metric_training t[] = {training(100, 5, 1e18, (uint64_t)1 << 52, (uint64_t)1 << 52),
	    training(100, 1, 300, 0, 300)};

	(void)state;
	struct metric_figures f = figures(&spec, t, 2);
	assert_true(near(f.loss, 3) && near(f.accuracy, 0.5));
	spec.recipe.local.unit = LOCAL_STEPS;
	spec.recipe.local.amount = 30;
	t[0].steps = (uint64_t)1 << 50;
	t[1].steps = 30;
	f = figures(&spec, t, 2);
	assert_true(near(f.loss, 3) && near(f.accuracy, 0.5));
	/* Weights of classes, the most of which a label can have. */
	float weights[] = {0.5f, 2};
	spec.recipe.net.class_weights = weights;
	spec.recipe.net.class_weight_count = 2;
	t[1].says.loss_count = 600;
	assert_true(near(figures(&spec, t, 2).loss, 3));
	/* A program's: a step takes its examples once. */
	spec = spec_of(1);
	spec.recipe.builtin = false;
	spec.recipe.data.shape[0] = 16;
	t[0].steps = t[1].steps = 1;
	t[1] = training(100, 1, 1600, 0, 1600);
	t[1].steps = 1;
	f = figures(&spec, t, 2);
	assert_true(near(f.loss, 3) && near(f.accuracy, 0.5));
	/* As many where the job does not say what an example is; of a text one for each token, but no fewer. */
	spec.recipe.data.dims = 0;
	f = figures(&spec, t, 2);
	assert_true(near(f.loss, 3) && near(f.accuracy, 0.5));
	assert_true(metric_evaluated_most(&spec, 10) == 160);
	spec.recipe.data.window = 5;
	assert_true(metric_evaluated_most(&spec, 10) == 160);
	spec.recipe.data.window = 50;
	assert_true(metric_evaluated_most(&spec, 10) == 500);
}

/* A few have less than half, whatever they say counted. */
static void
hostile_ones(void **state)
{
	struct job_spec spec = spec_of(1);
	struct metric_training t[5];

	(void)state;
	spec.aggregate.rule.hostile = 1;
	for (size_t i = 0; i < 5; i++)
		t[i] = training(100, 1, 10, 0, 10);
	t[4] = training(1000000, 1, 1e6, 1000000, 1000000);
	assert_true(near(figures(&spec, t, 5).accuracy, 0.2));
	/* Those in whom nothing counted have no part, and take none from the others. */
	t[4] = t[3] = t[2] = training(100, 0, 0, 0, 0);
	assert_true(near(figures(&spec, t, 5).loss, 1) && near(figures(&spec, t, 5).accuracy, 0));
	assert_true(near(figures(&spec, t + 1, 2).loss, 1));
}

/* Whatever the work, what an honest device counted is not cut. */
static void
honest_ones_are_not_cut(void **state)
{
	struct prng rng;

	(void)state;
	prng_seed(&rng, 7);
	for (int turn = 0; turn < 200000; turn++) {
		struct job_spec spec = spec_of(1 + (double)prng_below(&rng, 4));
		struct local_spec *l = &spec.recipe.local;
		uint64_t have = 1 + prng_below(&rng, 50);
		l->batch = (uint32_t)prng_below(&rng, 20);
		l->accumulate = 1 + (uint32_t)prng_below(&rng, 3);
		if (prng_below(&rng, 2)) {
			l->unit = LOCAL_STEPS;
			l->amount = 1 + (double)prng_below(&rng, 40);
		}
		uint64_t batch = l->batch && l->batch < have ? l->batch : have;
		uint64_t step = batch * l->accumulate, each = (have + step - 1) / step;
		uint64_t planned = (uint64_t)l->amount * (l->unit == LOCAL_EPOCHS ? each : 1);
		bool partial = prng_below(&rng, 2);
		uint64_t steps = partial ? 1 + prng_below(&rng, planned) : planned, passed = 0;
		for (uint64_t i = 0; i < steps; i++)
			passed +=
			    (i + 1) % each ? (step < have ? step : have) : have - (each - 1) * step;
		/* As train.c counts them. */
		uint64_t whole = planned * step < have ? planned * step : have;
		uint64_t n = passed < have ? passed : have;
		if (partial) {
			n = (uint64_t)((double)whole * ((double)steps / (double)planned));
			n = n < 1 ? 1 : n < have ? n : have;
		}
		const struct metric_training t = {
		    .examples = n, .steps = steps, .partial = partial};
		assert_true(metric_trained_most(&spec, &t) >= (double)passed);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(sums_over_what_counted),
	    cmocka_unit_test(only_a_loss),
	    cmocka_unit_test(who_does_not_say),
	    cmocka_unit_test(no_more_than_can_be),
	    cmocka_unit_test(hostile_ones),
	    cmocka_unit_test(honest_ones_are_not_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
