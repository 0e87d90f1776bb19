/* stages: gcc clang address */
/* What a device and whoever repeats its work compute alike: the seed and the rate of a round. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "near.h"
#include "schedule.h"
#include "training.h"

static void
schedules(void **state)
{
	struct local_spec l = {.optimizer = {.rate = 0.5}};

	(void)state;
	near(training_rate(&l, 1), 0.5);
	near(training_rate(&l, 1000), 0.5);
	l.schedule = (struct schedule_spec){.type = SCHEDULE_CONSTANT, .warmup = 5};
	near(training_rate(&l, 1), 0.1);
	near(training_rate(&l, 4), 0.4);
	near(training_rate(&l, 5), 0.5);
	near(training_rate(&l, 6), 0.5);
	l.schedule =
	    (struct schedule_spec){.type = SCHEDULE_STEP, .every = 3, .gamma = 0.1, .warmup = 2};
	near(training_rate(&l, 1), 0.25);
	near(training_rate(&l, 2), 0.5);
	near(training_rate(&l, 5), 0.5);
	near(training_rate(&l, 6), 0.05);
	near(training_rate(&l, 8), 0.05);
	near(training_rate(&l, 9), 0.005);
	l.schedule = (struct schedule_spec){.type = SCHEDULE_COSINE, .period = 10, .floor = 0.2};
	for (uint64_t t = 0; t <= 10; t++)
		near(training_rate(&l, t + 1),
		    0.5 * (0.2 + 0.8 * 0.5 * (1 + cos(3.14159265358979323846 * (double)t / 10))));
	near(training_rate(&l, 11), 0.1);
	near(training_rate(&l, 50), 0.1);
}

/* At 0, at the end of the warm-up, in the middle, at the end, and for ever after: exactly. */
static void
straight_schedules(void **state)
{
	struct schedule_spec s = {.type = SCHEDULE_LINEAR, .warmup = 4, .period = 8, .floor = 0.25};

	(void)state;
	assert_true(schedule_rate(&s, 0.5, 1) == 0.125);
	assert_true(schedule_rate(&s, 0.5, 4) == 0.5 && schedule_rate(&s, 0.5, 5) == 0.5);
	assert_true(schedule_rate(&s, 0.5, 9) == 0.3125);
	assert_true(schedule_rate(&s, 0.5, 13) == 0.125);
	assert_true(schedule_rate(&s, 0.5, 1000000) == 0.125);
	s = (struct schedule_spec){
	    .type = SCHEDULE_WSD, .warmup = 2, .stable = 3, .period = 4, .floor = 0};
	assert_true(schedule_rate(&s, 0.5, 1) == 0.25 && schedule_rate(&s, 0.5, 2) == 0.5);
	for (uint64_t round = 3; round <= 6; round++)
		assert_true(schedule_rate(&s, 0.5, round) == 0.5);
	assert_true(schedule_rate(&s, 0.5, 7) == 0.375 && schedule_rate(&s, 0.5, 9) == 0.125);
	assert_true(schedule_rate(&s, 0.5, 10) == 0 && schedule_rate(&s, 0.5, 1000) == 0);
	/* A floor of 1 is the constant rate to the bit, for each of them. */
	for (int type = SCHEDULE_COSINE; type <= SCHEDULE_WSD; type++) {
		s = (struct schedule_spec){
		    .type = (enum schedule_type)type, .stable = 3, .period = 7, .floor = 1};
		for (uint64_t round = 1; round < 20; round++)
			assert_true(schedule_rate(&s, 0.1, round) == 0.1);
	}
}

/* The seed depends on every byte of its three sources. */
static void
seeds(void **state)
{
	uint8_t device[32] = {0};
	uint64_t first = training_seed(1, 2, device);

	(void)state;
	assert_true(first == training_seed(1, 2, device));
	assert_true(first != training_seed(2, 1, device));
	assert_true(first != training_seed(1, 3, device));
	for (size_t i = 0; i < 32; i++) {
		device[i] = 1;
		assert_true(first != training_seed(1, 2, device));
		device[i] = 0;
	}
}

static uint64_t
steps(enum local_unit unit, double amount, uint32_t batch, uint32_t accumulate)
{
	const struct local_spec l = {
	    .unit = unit, .amount = amount, .batch = batch, .accumulate = accumulate};

	return training_steps(&l, 101);
}

/* An epoch ends with what is left of it; a batch is not larger than all there is. */
static void
plans(void **state)
{
	const struct local_spec epoch = {.unit = LOCAL_EPOCHS, .amount = 1};

	(void)state;
	assert_int_equal(steps(LOCAL_EPOCHS, 3, 10, 1), 33);
	assert_int_equal(steps(LOCAL_EPOCHS, 3, 10, 4), 9);
	assert_int_equal(steps(LOCAL_EPOCHS, 3, 0, 1), 3);
	assert_int_equal(steps(LOCAL_EPOCHS, 3, 500, 1), 3);
	assert_int_equal(steps(LOCAL_STEPS, 7, 10, 1), 7);
	assert_int_equal(steps(LOCAL_SECONDS, 1, 10, 1), 0);
	assert_int_equal(training_steps(&epoch, 0), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(schedules),
	    cmocka_unit_test(straight_schedules), cmocka_unit_test(seeds), cmocka_unit_test(plans)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
