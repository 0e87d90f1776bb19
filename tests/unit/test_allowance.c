/* stages: gcc clang address */
/* Which of its examples a device works on where a job lets it claim fewer than it has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "allowance.h"
#include "shard.h"
#include "training.h"

static const uint8_t device[32] = {1, 2, 3};

static struct recipe
by_epochs(double epochs)
{
	return (struct recipe){
	    .local = {.unit = LOCAL_EPOCHS, .amount = epochs, .batch = 5, .accumulate = 1}};
}

/* Only work that would take more different examples is cut: what was taken before stays what it was. */
static void
counts(void **state)
{
	struct recipe r = by_epochs(1);

	(void)state;
	assert_int_equal(allowance_of(&r, false, 20, 0, 10).train, 10);
	assert_int_equal(allowance_of(&r, false, 10, 0, 10).train, 10);
	assert_int_equal(allowance_of(&r, false, 9, 0, 10).train, 9);
	assert_int_equal(allowance_of(&r, false, 20, 0, 0).train, 20);
	r.local.unit = LOCAL_STEPS;
	r.local.amount = 2;
	assert_int_equal(allowance_of(&r, false, 20, 0, 10).train, 20);
	r.local.amount = 3;
	assert_int_equal(allowance_of(&r, false, 20, 0, 10).train, 10);
	r.local.accumulate = 2;
	r.local.amount = 1;
	assert_int_equal(allowance_of(&r, false, 20, 0, 10).train, 20);
	r.local.amount = 2;
	assert_int_equal(allowance_of(&r, false, 20, 0, 10).train, 10);
	r.local.unit = LOCAL_SECONDS;
	assert_int_equal(allowance_of(&r, false, 20, 0, 10).train, 10);
	r.local.unit = LOCAL_SIZED;
	r.local.amount = 1;
	assert_int_equal(allowance_of(&r, false, 20, 0, 10).train, 20);
	/* A batch of all examples. */
	r.local = by_epochs(1).local;
	r.local.batch = 0;
	r.local.unit = LOCAL_STEPS;
	assert_int_equal(allowance_of(&r, false, 20, 0, 10).train, 10);
}

/* The report of an evaluation claims, too, but only where devices evaluate. */
static void
evaluations(void **state)
{
	struct recipe r = by_epochs(1);

	(void)state;
	assert_int_equal(allowance_of(&r, false, 8, 30, 10).validation, 30);
	assert_false(allowance_cuts(&r, false, 10, 10));
	assert_true(allowance_cuts(&r, false, 11, 10));
	r.evaluate_by = EVALUATE_DEVICES;
	assert_int_equal(allowance_of(&r, false, 8, 30, 10).validation, 10);
	r.data.validation = 0.9;
	assert_true(allowance_cuts(&r, false, 20, 10));
	assert_true(allowance_cuts(&r, true, 20, 10));
	assert_false(allowance_cuts(&r, true, 11, 10));
	/* Without a share of its own it is of all examples. */
	r.data.validation = 0;
	assert_true(allowance_cuts(&r, true, 11, 10));
	assert_int_equal(allowance_of(&r, true, 11, 0, 10).train, 10);
	r.local.unit = LOCAL_STEPS;
	r.local.amount = 1;
	assert_true(allowance_cuts(&r, true, 11, 10));
}

static bool
is_ascending(const uint32_t *a, size_t n, size_t below)
{
	for (size_t i = 0; i < n; i++)
		if (a[i] >= below || (i > 0 && a[i] <= a[i - 1]))
			return false;
	return true;
}

static size_t
in_both(const uint32_t *a, size_t n, const uint32_t *b, size_t m)
{
	size_t both = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < m; k++)
			both += a[i] == b[k];
	return both;
}

struct drawn {
	uint32_t *of;
	size_t n;
};

static struct drawn
draw(const struct allowance_want *want, bool to_train_on)
{
	struct drawn d;

	assert_int_equal(allowance_draw(&d.of, &d.n, want, to_train_on), ERR_OK);
	return d;
}

/* To train on: anew in each round. To evaluate on: the same in all of them, and of the validation share. */
static void
draws(void **state)
{
	struct recipe r = by_epochs(1);
	struct allowance_want want = {.recipe = &r,
	    .examples = 1000,
	    .most = 100,
	    .job_seed = 5,
	    .round = 1,
	    .device = device};
	uint32_t *held = NULL;
	size_t held_count;

	(void)state;
	r.data.validation = 0.3;
	r.evaluate_by = EVALUATE_DEVICES;
	assert_int_equal(
	    shard_hold(&held, &held_count, 1000, 0.3, training_seed(5, 0, device)), ERR_OK);
	struct drawn one = draw(&want, true), kept = draw(&want, false), again = draw(&want, true);
	assert_int_equal(one.n, 100);
	assert_int_equal(kept.n, 100);
	assert_true(is_ascending(one.of, 100, 1000) && is_ascending(kept.of, 100, 1000));
	assert_memory_equal(one.of, again.of, 100 * sizeof(*one.of));
	assert_int_equal(in_both(one.of, 100, held, held_count), 0);
	assert_int_equal(in_both(kept.of, 100, held, held_count), 100);
	want.round = 2;
	struct drawn two = draw(&want, true), still = draw(&want, false);
	size_t both = in_both(one.of, 100, two.of, 100);
	assert_true(both > 2 && both < 40);
	assert_memory_equal(kept.of, still.of, 100 * sizeof(*kept.of));
	/* Another device, another share. */
	static const uint8_t other[32] = {9};
	want.device = other;
	struct drawn theirs = draw(&want, true);
	assert_true(in_both(two.of, 100, theirs.of, 100) < 40);
	free(one.of);
	free(two.of);
	free(again.of);
	free(kept.of);
	free(still.of);
	free(theirs.of);
	free(held);
}

/* Each example is as likely as any other, whatever its place. */
static void
evenly(void **state)
{
	unsigned seen[20] = {0};

	(void)state;
	for (uint64_t seed = 0; seed < 4000; seed++) {
		uint32_t *keep;
		size_t n;
		assert_int_equal(shard_share(&keep, &n, 20, 10, seed), ERR_OK);
		assert_int_equal(n, 10);
		for (size_t i = 0; i < n; i++)
			seen[keep[i]]++;
		free(keep);
	}
	for (size_t i = 0; i < 20; i++)
		assert_in_range(seen[i], 1850, 2150);
}

/* What every machine draws, and every version from here on: rounds are repeated from their records. */
static void
known_answer(void **state)
{
	static const uint32_t expected[] = {1, 3, 4, 14, 17};
	struct recipe r = by_epochs(1);
	const struct allowance_want want = {
	    .recipe = &r, .examples = 20, .most = 5, .job_seed = 1, .round = 3, .device = device};

	(void)state;
	struct drawn d = draw(&want, true);
	assert_int_equal(d.n, 5);
	assert_memory_equal(d.of, expected, sizeof(expected));
	free(d.of);
}

/* Of a text the job's window decides; what is no text, or of an agent that does not say, is as many as it was. */
static void
examples_of_a_text(void **state)
{
	struct data_spec job = {.window = 8};

	(void)state;
	assert_int_equal(allowance_examples(&job, 1, 41), 5);
	assert_int_equal(allowance_examples(&job, 1, 40), 4);
	assert_int_equal(allowance_examples(&job, 1, 9), 1);
	assert_int_equal(allowance_examples(&job, 2, 8), 1);
	assert_int_equal(allowance_examples(&job, 7, 0), 7);
	job.window = 0;
	assert_int_equal(allowance_examples(&job, 7, 1000), 7);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(examples_of_a_text),
	    cmocka_unit_test(counts),
	    cmocka_unit_test(evaluations),
	    cmocka_unit_test(draws),
	    cmocka_unit_test(evenly),
	    cmocka_unit_test(known_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
