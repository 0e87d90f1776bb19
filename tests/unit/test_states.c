/* stages: gcc address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "states.h"

static void
every_name_leads_back(void **state)
{
	(void)state;
	for (enum job_state s = JOB_UNKNOWN; s <= JOB_STOPPED; s++)
		assert_int_equal(states_job_find(states_job_name(s)), s);
	for (enum device_state s = DEVICE_UNKNOWN; s <= DEVICE_LEFT; s++)
		assert_int_equal(states_device_find(states_device_name(s)), s);
	for (enum round_outcome s = OUTCOME_UNKNOWN; s <= OUTCOME_EVALUATED; s++)
		assert_int_equal(states_round_find(states_round_name(s)), s);
}

/* As they lie in databases and travel in messages. */
static void
names_stay(void **state)
{
	(void)state;
	assert_int_equal(states_job_find("running"), JOB_RUNNING);
	assert_int_equal(states_job_find("paused"), JOB_PAUSED);
	assert_int_equal(states_job_find("done"), JOB_DONE);
	assert_int_equal(states_job_find("stopped"), JOB_STOPPED);
	assert_int_equal(states_device_find("active"), DEVICE_ACTIVE);
	assert_int_equal(states_device_find("suspended"), DEVICE_SUSPENDED);
	assert_int_equal(states_device_find("revoked"), DEVICE_REVOKED);
	assert_int_equal(states_device_find("left"), DEVICE_LEFT);
	assert_int_equal(states_round_find("open"), OUTCOME_OPEN);
	assert_int_equal(states_round_find("committed"), OUTCOME_COMMITTED);
	assert_int_equal(states_round_find("failed"), OUTCOME_FAILED);
	assert_int_equal(states_round_find("evaluating"), OUTCOME_EVALUATING);
	assert_int_equal(states_round_find("evaluated"), OUTCOME_EVALUATED);
	for (enum round_outcome s = OUTCOME_UNKNOWN; s <= OUTCOME_EVALUATED; s++) {
		assert_int_equal(
		    states_round_is_open(s), s == OUTCOME_OPEN || s == OUTCOME_EVALUATING);
		assert_int_equal(states_round_evaluates(s), s >= OUTCOME_EVALUATING);
	}
}

static void
other_words_are_unknown(void **state)
{
	static const char *const others[] = {NULL, "", "Running", "runnin", "runnings", "waiting"};

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_int_equal(states_job_find(others[i]), JOB_UNKNOWN);
		assert_int_equal(states_device_find(others[i]), DEVICE_UNKNOWN);
		assert_int_equal(states_round_find(others[i]), OUTCOME_UNKNOWN);
	}
}

static void
two_states_are_not_over(void **state)
{
	(void)state;
	assert_true(states_job_lives(JOB_RUNNING) && states_job_lives(JOB_PAUSED));
	assert_false(states_job_lives(JOB_DONE) || states_job_lives(JOB_STOPPED));
	assert_false(states_job_lives(JOB_UNKNOWN));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_name_leads_back),
	    cmocka_unit_test(names_stay),
	    cmocka_unit_test(other_words_are_unknown),
	    cmocka_unit_test(two_states_are_not_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
