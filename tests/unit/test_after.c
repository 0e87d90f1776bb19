/* stages: gcc clang openssl address */
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

static enum after_limit
reached(uint64_t round)
{
	return after_reached(&spec.stop, &(struct after_progress){.round = round});
}

static void
each_row(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct rate_control_turn turn = {
		    .verdict = rows[i].verdict, .back = rows[i].back, .reason = "guard"};
		const struct after_round r = {.limit = reached(rows[i].round),
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

/* Where devices measure the base of each round, the model of the last has no figure yet. */
static void
the_last_is_evaluated(void **state)
{
	static const struct {
		const char *what;
		uint64_t round;
		unsigned actions;
		bool committed, evaluators, back;
		double accuracy;
		bool begin_evaluation;
		enum job_state job_state;
		const char *reason;
	} cases[] = {
	    {"not the last", 3, NEXT, true, true, false, 0.5, false, JOB_UNKNOWN, ""},
	    {"the last", 10, NEXT, true, true, false, 0.5, true, JOB_UNKNOWN, "all rounds done"},
	    {"target", 3, NEXT, true, true, false, 0.9, true, JOB_UNKNOWN, "target reached"},
	    {"nobody evaluates", 10, NEXT, true, false, false, 0.5, false, JOB_DONE,
		"all rounds done; its last model has no figure: fewer devices than the quorum "
		"evaluate"},
	    {"the guard goes back to a model with a figure", 10, NEXT, true, true, true, 0.5, false,
		JOB_DONE, "all rounds done; the last were bad"},
	    {"the last failed: its base has a figure", 10, NEXT, false, true, false, NAN, false,
		JOB_DONE, "all rounds done"},
	    {"the job was stopped meanwhile", 10, 0, true, true, false, 0.5, false, JOB_DONE,
		"all rounds done"},
	};
	struct job_spec devices = spec;

	(void)state;
	devices.recipe.evaluate_by = EVALUATE_DEVICES;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct rate_control_turn turn = {.back = cases[i].back};
		const struct after_round r = {.limit = reached(cases[i].round),
		    .actions = cases[i].actions,
		    .committed = cases[i].committed,
		    .has_evaluators = cases[i].evaluators,
		    .evaluated = !isnan(cases[i].accuracy),
		    .loss = 1,
		    .accuracy = cases[i].accuracy,
		    .turn = &turn};
		struct after after;

		print_message("%s\n", cases[i].what);
		after_decide(&after, &devices, &r);
		assert_int_equal(after.begin_evaluation, cases[i].begin_evaluation);
		assert_int_equal(after.job_state, cases[i].job_state);
		assert_string_equal(after.job_reason, cases[i].reason);
		assert_int_equal(after.begin_next, cases[i].round == 3 && cases[i].accuracy < 0.9);
	}
}

static void
what_an_evaluation_ends_with(void **state)
{
	static const struct {
		struct after_evaluation v;
		const char *why, *reason;
	} cases[] = {
	    {{"all rounds done", 2, 2, true}, "", "all rounds done"},
	    {{"", 2, 2, true}, "", "evaluated"},
	    {{"target reached", 0, 2, false}, "no device reported before the deadline",
		"target reached; its last model has no figure: no device reported before the "
		"deadline"},
	    {{"", 1, 2, false}, "1 of 2 reports before the deadline",
		"not evaluated: 1 of 2 reports before the deadline"},
	    {{"", 2, 2, false}, "the reports hold too few figures",
		"not evaluated: the reports hold too few figures"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char why[128];
		struct after after;

		after_evaluated(&after, &cases[i].v, why);
		assert_int_equal(after.job_state, JOB_DONE);
		assert_false(after.begin_next || after.begin_evaluation);
		assert_string_equal(why, cases[i].why);
		assert_string_equal(after.job_reason, cases[i].reason);
	}
}

/* Figures of a round that was not evaluated are nobody's. */
static void
not_evaluated(void **state)
{
	const struct rate_control_turn turn = {.verdict = GUARD_CALM};
	const struct after_round r = {.actions = NEXT, .loss = 0, .accuracy = 1, .turn = &turn};
	struct after after;

	(void)state;
	after_decide(&after, &spec, &r);
	assert_true(after.begin_next);
}

/* Each limit by itself, and the first of several. */
static void
limits(void **state)
{
	static const struct {
		struct stop_spec stop;
		struct after_progress at;
		enum after_limit limit;
	} cases[] = {
	    {{.rounds = 3}, {2, 1000, 1e9}, AFTER_NO_LIMIT},
	    {{.rounds = 3}, {3, 0, 0}, AFTER_ROUNDS},
	    {{.rounds = 3}, {4, 0, 0}, AFTER_ROUNDS},
	    {{.reports = 20}, {100, 19, 1e9}, AFTER_NO_LIMIT},
	    {{.reports = 20}, {2, 20, 0}, AFTER_REPORTS},
	    {{.reports = 20}, {2, 23, 0}, AFTER_REPORTS},
	    {{.seconds = 60}, {100, 100, 59.9}, AFTER_NO_LIMIT},
	    {{.seconds = 60}, {1, 0, 60}, AFTER_SECONDS},
	    {{.rounds = 3, .reports = 20, .seconds = 60}, {3, 20, 60}, AFTER_ROUNDS},
	    {{.rounds = 3, .reports = 20, .seconds = 60}, {2, 20, 60}, AFTER_REPORTS},
	    /* A clock that was set back: not yet. */
	    {{.seconds = 60}, {1, 0, -1e9}, AFTER_NO_LIMIT},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(after_reached(&cases[i].stop, &cases[i].at), cases[i].limit);
}

static void
limits_end_the_job(void **state)
{
	static const struct {
		enum after_limit limit;
		bool committed, back;
		double accuracy;
		enum job_state job_state;
		const char *reason;
	} cases[] = {
	    {AFTER_NO_LIMIT, true, false, 0.5, JOB_UNKNOWN, ""},
	    {AFTER_REPORTS, true, false, 0.5, JOB_DONE, "all reports are in"},
	    {AFTER_REPORTS, true, true, 0.5, JOB_DONE, "all reports are in; the last were bad"},
	    {AFTER_REPORTS, true, false, 0.9, JOB_DONE, "target reached"},
	    /* Its reports are in no model. */
	    {AFTER_REPORTS, false, false, NAN, JOB_UNKNOWN, ""},
	    {AFTER_SECONDS, true, false, 0.5, JOB_DONE, "its time is over"},
	    {AFTER_SECONDS, false, false, NAN, JOB_DONE, "its time is over"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct rate_control_turn turn = {.back = cases[i].back};
		const struct after_round r = {.limit = cases[i].limit,
		    .actions = NEXT,
		    .committed = cases[i].committed,
		    .evaluated = !isnan(cases[i].accuracy),
		    .loss = 1,
		    .accuracy = cases[i].accuracy,
		    .turn = &turn};
		struct after after;

		after_decide(&after, &spec, &r);
		assert_int_equal(after.job_state, cases[i].job_state);
		assert_string_equal(after.job_reason, cases[i].reason);
		assert_int_equal(after.begin_next, cases[i].job_state == JOB_UNKNOWN);
	}
}

/* A job without an end goes on. */
static void
no_end(void **state)
{
	const struct rate_control_turn turn = {.verdict = GUARD_CALM};
	const struct stop_spec none = {.rounds = 0};
	const struct after_round r = {
	    .limit = after_reached(&none, &(struct after_progress){UINT64_MAX, UINT64_MAX, 1e300}),
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
	    cmocka_unit_test(the_last_is_evaluated),
	    cmocka_unit_test(what_an_evaluation_ends_with),
	    cmocka_unit_test(not_evaluated),
	    cmocka_unit_test(limits),
	    cmocka_unit_test(limits_end_the_job),
	    cmocka_unit_test(no_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
