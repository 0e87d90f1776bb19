/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "job.h"
#include "metric.h"
#include "prng.h"

#define REPORTS 7
/* What a device reports that does not say what counted. */
#define OF(w, l, a) \
	{ \
		.weight = (w), .loss = (l), .accuracy = (a) \
	}

static const struct metric_report none = {.weight = 10, .loss = NAN, .accuracy = NAN};

static struct metric
metric(const struct job_spec *spec, const struct metric_report *r, size_t count)
{
	struct metric m;

	assert_int_equal(metric_of(&m, spec, r, count), ERR_OK);
	return m;
}

static struct job_spec
bearing(uint32_t hostile)
{
	return (struct job_spec){.aggregate = {.rule = {.hostile = hostile}}};
}

static void
the_mean_by_examples(void **state)
{
	const struct job_spec spec = bearing(0);
	const struct metric_report r[] = {OF(30, 1, 0.5), OF(10, 5, 1), OF(60, 2, NAN)};

	(void)state;
	struct metric m = metric(&spec, r, 3);
	assert_true(m.known && m.loss == 2 && m.accuracy == 0.625);
	assert_false(metric(&spec, r, 0).known);
}

/* What is not finite counts where most find it so, and not before. */
static void
what_is_no_number(void **state)
{
	const struct job_spec spec = bearing(0);
	const struct job_spec guarded = {.guard = {.on = true, .metric = GUARD_ACCURACY}};
	struct metric_report r[] = {OF(10, 2, 0.5), none, OF(10, 4, 0.7), none};

	(void)state;
	struct metric m = metric(&spec, r, 4);
	assert_true(m.known && m.loss == 3 && fabs(m.accuracy - 0.6) < 1e-12);
	assert_true(metric(&guarded, r, 4).accuracy > 0.59);
	r[0] = none;
	m = metric(&spec, r, 4);
	assert_true(m.known && isnan(m.loss) && isnan(m.accuracy));
	m = metric(&guarded, r, 4);
	assert_true(m.known && isnan(m.loss) && m.accuracy == 0);
	/* A sum of such would not be finite. */
	const struct metric_report huge[] = {
	    OF(1e6, 1e308, 0.5), OF(10, 1, 0.5), OF(10, -1e308, 0.5)};
	assert_true(isnan(metric(&spec, huge, 3).loss));
	assert_true(metric(&spec, huge, 2).loss == 1);
	/* Only accuracies: nobody says a loss. */
	const struct metric_report accuracies[] = {OF(10, NAN, 0.5), OF(10, NAN, 0.7)};
	m = metric(&guarded, accuracies, 2);
	assert_true(isnan(m.loss) && fabs(m.accuracy - 0.6) < 1e-12);
}

static void
the_median(void **state)
{
	const struct job_spec spec = bearing(1);
	const struct metric_report r[] = {
	    OF(1, 1, 0.1), OF(1, 3, 0.9), OF(1, 2, 0.3), OF(1, 9, 0.2)};

	(void)state;
	assert_false(metric(&spec, r, 2).known);
	struct metric m = metric(&spec, r, 3);
	assert_true(m.known && m.loss == 2 && m.accuracy == 0.3);
	/* Between two. */
	m = metric(&spec, r, 4);
	assert_true(m.loss == 2.5 && m.accuracy == 0.25);
	/* By examples, where these differ in good faith. */
	const struct metric_report weighed[] = {OF(10, 1, 0.1), OF(10, 3, 0.9), OF(2, 4, 0.3)};
	assert_true(metric(&spec, weighed, 3).loss == 3);
	/* Who alone says an accuracy does not decide it. */
	const struct metric_report one[] = {OF(1, 1, 1), OF(1, 3, NAN), OF(1, 2, NAN)};
	m = metric(&spec, one, 3);
	assert_true(m.loss == 2 && isnan(m.accuracy));
}

/* Whatever `hostile` of them claim, the metric lies between figures of the others; of 2 x hostile or fewer there is none. */
static void
hostile_ones_decide_nothing(void **state)
{
	static const double claims[] = {-1e308, -1, 0, 1, 1e30, 1e308, NAN, INFINITY};
	struct metric_report r[REPORTS];
	struct prng rng;

	(void)state;
	prng_seed(&rng, 12);
	for (int turn = 0; turn < 20000; turn++) {
		size_t count = 3 + prng_below(&rng, REPORTS - 2);
		uint32_t hostile = 1 + (uint32_t)prng_below(&rng, (count - 1) / 2);
		const struct job_spec spec = bearing(hostile);
		for (size_t i = 0; i < count; i++) {
			r[i] =
			    (struct metric_report)OF(1 + (double)prng_below(&rng, i % 2 ? 5 : 1000),
				2 + prng_double(&rng), 0.5 + prng_double(&rng) / 10);
			if (i >= count - hostile)
				r[i] = (struct metric_report)OF(1e6, claims[prng_below(&rng, 8)],
				    prng_below(&rng, 3) ? 1 : NAN);
		}
		struct metric m = metric(&spec, r, count);
		assert_true(m.known && m.loss >= 2 && m.loss <= 3);
		assert_true(isnan(m.accuracy) || (m.accuracy >= 0.5 && m.accuracy <= 0.6));
	}
}

static struct metric_report
counted(double weight, double loss, double loss_count, uint64_t right, uint64_t labels)
{
	return (struct metric_report){.weight = weight,
	    .loss = loss,
	    .accuracy = labels > 0 ? (double)right / (double)labels : (double)NAN,
	    .most = weight,
	    .says = {true, loss_count, true, labels, right}};
}

/* Sums over what counted: a device with few labels that are not ignored has a small part, one with none has no part, and is not silent. */
static void
what_counts(void **state)
{
	const struct job_spec spec = bearing(0);
	const struct job_spec guarded = {.guard = {.on = true, .metric = GUARD_ACCURACY}};
	struct metric_report r[] = {counted(100, 3, 1, 0, 1), counted(100, 1, 100, 50, 100),
	    counted(100, NAN, 0, 0, 0), counted(100, NAN, 0, 0, 0)};

	(void)state;
	struct metric m = metric(&spec, r, 4);
	assert_true(m.known && fabs(m.loss - 103.0 / 101) < 1e-12);
	assert_true(fabs(m.accuracy - 50.0 / 101) < 1e-12);
	assert_true(fabs(metric(&guarded, r, 4).accuracy - 50.0 / 101) < 1e-12);
	assert_false(metric(&spec, r + 2, 2).known);
	/* It cannot claim more than its examples can count for. */
	r[0] = counted(100, 3, 1e18, 1u << 30, 1u << 30);
	m = metric(&spec, r, 2);
	assert_true(fabs(m.loss - 2) < 1e-12 && fabs(m.accuracy - 0.75) < 1e-12);
	/* One of an old version weighs as much for each example. */
	r[1] = (struct metric_report)OF(300, 1, 0.5);
	r[0] = counted(100, 3, 50, 25, 50);
	m = metric(&spec, r, 2);
	assert_true(fabs(m.loss - 1.5) < 1e-12 && fabs(m.accuracy - 0.5) < 1e-12);
}

/* One that says that nothing weighs, or next to nothing, takes no figure from the others. */
static void
weightless_ones(void **state)
{
	const struct job_spec plain = bearing(0), robust = bearing(1);
	struct metric_report r[] = {
	    counted(100, 1, 100, 50, 100), counted(100, 1, 100, 50, 100), counted(100, 1, 0, 1, 1)};

	(void)state;
	assert_false(metric(&robust, r, 3).known);
	r[2].says.loss_count = 100;
	assert_true(metric(&robust, r, 3).known);
	struct metric_report next[] = {
	    OF(100, 2, 0.5), OF(100, 2, 0.5), counted(100, 0, 5e-324, 1, 1)};
	struct metric m = metric(&plain, next, 3);
	assert_true(m.known && m.loss > 1.9);
	m = metric(&robust, next, 3);
	assert_true(m.known && m.loss > 1.9);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_mean_by_examples),
	    cmocka_unit_test(what_is_no_number),
	    cmocka_unit_test(the_median),
	    cmocka_unit_test(what_counts),
	    cmocka_unit_test(weightless_ones),
	    cmocka_unit_test(hostile_ones_decide_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
