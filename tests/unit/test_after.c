#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "after.h"
#include "round.h"

/* A job of ten rounds with both targets; each row is the end of one round. */
static const struct job_spec spec = {
    .stop = {.rounds = 10, .has_accuracy = true, .accuracy = 0.9, .has_loss = true, .loss = 0.1}};

#define NEXT ROUND_DO_BEGIN
#define THIRD (ROUND_DO_BEGIN | ROUND_DO_PAUSE)
#define NOTHING NAN, NAN

static const struct {
	const char *what;
	uint64_t round;
	unsigned actions;
	double loss, accuracy;
	enum guard_verdict verdict;
	bool back, begin_next;
	enum job_state job_state;
	const char *reason;
} rows[] = {
    {"goes on", 3, NEXT, 1, 0.5, GUARD_CALM, false, true, JOB_UNKNOWN, ""},
    {"was not evaluated", 3, NEXT, NOTHING, GUARD_CALM, false, true, JOB_UNKNOWN, ""},
    {"bad, not yet often enough", 3, NEXT, 2, 0.1, GUARD_BAD, false, true, JOB_UNKNOWN, ""},
    {"the job was stopped meanwhile", 3, 0, 1, 0.5, GUARD_CALM, false, false, JOB_UNKNOWN, ""},
    {"accuracy", 3, NEXT, 1, 0.9, GUARD_CALM, false, false, JOB_DONE, "target reached"},
    {"loss", 3, NEXT, 0.1, 0.5, GUARD_CALM, false, false, JOB_DONE, "target reached"},
    {"loss, accuracy not known", 3, NEXT, 0.1, NAN, GUARD_CALM, false, false, JOB_DONE,
	"target reached"},
    {"what is not finite", 3, NEXT, -INFINITY, INFINITY, GUARD_CALM, false, true, JOB_UNKNOWN, ""},
    {"just short of it", 3, NEXT, 0.11, 0.89, GUARD_CALM, false, true, JOB_UNKNOWN, ""},
    {"the last", 10, NEXT, 1, 0.5, GUARD_CALM, false, false, JOB_DONE, "all rounds done"},
    {"target in the last", 10, NEXT, 1, 0.9, GUARD_CALM, false, false, JOB_DONE, "target reached"},
    {"the third that failed", 3, THIRD, NOTHING, GUARD_CALM, false, true, JOB_PAUSED,
	"3 rounds in a row were not finite"},
    {"the third that failed is the last", 10, THIRD, NOTHING, GUARD_CALM, false, false, JOB_DONE,
	"all rounds done"},
    {"guard pauses", 3, NEXT, 2, 0.1, GUARD_PAUSE, false, true, JOB_PAUSED, "guard"},
    {"guard goes back", 3, NEXT, 2, 0.1, GUARD_ROLLBACK, true, true, JOB_UNKNOWN, ""},
    {"guard goes back and pauses", 3, NEXT, 2, 0.1, GUARD_ROLLBACK_PAUSE, true, true, JOB_PAUSED,
	"guard"},
    {"guard and failures", 3, THIRD, NAN, 0, GUARD_PAUSE, false, true, JOB_PAUSED, "guard"},
    {"guard goes back after the last", 10, NEXT, 2, 0.1, GUARD_ROLLBACK, true, false, JOB_DONE,
	"all rounds done; the last were bad"},
    {"guard stops", 3, NEXT, 2, 0.1, GUARD_STOP, true, false, JOB_STOPPED, "guard"},
    {"guard stops after the last", 10, NEXT, 2, 0.1, GUARD_STOP, true, false, JOB_STOPPED, "guard"},
    {"guard stops what has reached its target", 3, NEXT, 2, 0.95, GUARD_STOP, true, false, JOB_DONE,
	"target reached"},
};

static void
each_row(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct schedule_turn turn = {
		    .verdict = rows[i].verdict, .back = rows[i].back, .reason = "guard"};
		const struct after_round r = {.round = rows[i].round,
		    .actions = rows[i].actions,
		    .evaluated = !isnan(rows[i].loss) || !isnan(rows[i].accuracy),
		    .loss = rows[i].loss,
		    .accuracy = rows[i].accuracy,
		    .turn = &turn};
		struct after after;

		print_message("%s\n", rows[i].what);
		after_decide(&after, &spec, &r);
		assert_int_equal(after.begin_next, rows[i].begin_next);
		assert_int_equal(after.job_state, rows[i].job_state);
		assert_string_equal(after.job_reason, rows[i].reason);
	}
}

/* Figures of a round that was not evaluated are nobody's. */
static void
not_evaluated(void **state)
{
	const struct schedule_turn turn = {.verdict = GUARD_CALM};
	const struct after_round r = {
	    .round = 3, .actions = NEXT, .loss = 0, .accuracy = 1, .turn = &turn};
	struct after after;

	(void)state;
	after_decide(&after, &spec, &r);
	assert_true(after.begin_next);
}

/* A job without an end goes on. */
static void
no_end(void **state)
{
	const struct schedule_turn turn = {.verdict = GUARD_CALM};
	const struct after_round r = {.round = UINT64_MAX,
	    .actions = NEXT,
	    .evaluated = true,
	    .loss = 0,
	    .accuracy = 1,
	    .turn = &turn};
	struct after after;

	(void)state;
	after_decide(&after, &(struct job_spec){.stop.rounds = 0}, &r);
	assert_true(after.begin_next);
	assert_int_equal(after.job_state, JOB_UNKNOWN);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_row),
	    cmocka_unit_test(not_evaluated),
	    cmocka_unit_test(no_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
