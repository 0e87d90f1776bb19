/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "round.h"

/* The machine of round.c over several steps. Rounds open at T0. */
#define T0 10000
#define DEADLINE (T0 + 1000)
#define QUORUM_AT (T0 + 500)
#define GRACE_END (QUORUM_AT + 100)
#define DRAW_AT (T0 + 50)
static const struct round_policy policy = {.goal = 3,
    .quorum = 2,
    .invite_max = 4,
    .deadline_ms = 1000,
    .grace_ms = 100,
    .sample_ms = 50,
    .failures = 3};
static const struct round_policy sampling = {.goal = 3,
    .quorum = 2,
    .invite_max = 4,
    .deadline_ms = 1000,
    .grace_ms = 100,
    .sample_ms = 50,
    .sample = true,
    .failures = 3};

/* --- by goal, quorum and deadline */

static unsigned
step(struct round *r, enum round_event event, uint64_t now)
{
	return round_step(r, event, 0, now);
}

/* One delta from its last byte to the disk. */
static unsigned
report(struct round *r, uint64_t now)
{
	assert_int_equal(step(r, ROUND_TAKE, now), ROUND_DO_TAKE);
	return step(r, ROUND_ACCEPTED, now);
}

static struct round
begun(const struct round_policy *p)
{
	struct round r;

	round_init(&r, p, 0);
	assert_int_equal(round_next_ms(&r), UINT64_MAX);
	assert_int_equal(step(&r, ROUND_BEGIN, T0), 0);
	return r;
}

static void
invite(struct round *r, unsigned n, uint64_t now)
{
	while (n-- > 0)
		assert_int_equal(step(r, ROUND_ASK, now), ROUND_DO_INVITE);
}

static void
a_round_by_the_goal(void **state)
{
	struct round r = begun(&policy);

	(void)state;
	assert_int_equal(r.opened_ms, T0);
	assert_int_equal(round_next_ms(&r), DEADLINE);
	invite(&r, 4, T0 + 1);
	assert_int_equal(step(&r, ROUND_ASK, T0 + 1), 0);
	assert_int_equal(report(&r, T0 + 10), 0);
	assert_int_equal(report(&r, QUORUM_AT), 0);
	assert_int_equal(r.state, ROUND_GRACE);
	assert_int_equal(round_next_ms(&r), GRACE_END);
	assert_int_equal(report(&r, QUORUM_AT + 1), ROUND_DO_FOLD);
	assert_int_equal(round_next_ms(&r), UINT64_MAX);
	assert_int_equal(step(&r, ROUND_TAKE, QUORUM_AT + 2), 0);
	assert_int_equal(step(&r, ROUND_FOLDED, QUORUM_AT + 3), ROUND_DO_BEGIN);
	assert_int_equal(step(&r, ROUND_BEGIN, QUORUM_AT + 4), 0);
	assert_int_equal(r.invited + r.accepted + r.aborted, 0);
	assert_int_equal(r.opened_ms, QUORUM_AT + 4);
	assert_int_equal(r.deadline_ms, QUORUM_AT + 4 + policy.deadline_ms);
}

/* All that were taken before the round closed are in it, also beyond the goal. */
static void
closing_waits_for_the_disk(void **state)
{
	struct round r = begun(&policy);

	(void)state;
	invite(&r, 4, T0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(step(&r, ROUND_TAKE, T0 + 1), ROUND_DO_TAKE);
	assert_int_equal(step(&r, ROUND_ACCEPTED, T0 + 2), 0);
	assert_int_equal(step(&r, ROUND_ACCEPTED, T0 + 2), 0);
	assert_int_equal(step(&r, ROUND_ACCEPTED, T0 + 2), 0);
	assert_int_equal(r.state, ROUND_CLOSING);
	assert_string_equal(round_state_name(&r), "closing");
	assert_int_equal(step(&r, ROUND_TAKE, T0 + 3), 0);
	assert_int_equal(step(&r, ROUND_TICK, DEADLINE), 0);
	assert_int_equal(step(&r, ROUND_ACCEPTED, DEADLINE), ROUND_DO_FOLD);
	assert_int_equal(r.accepted, 4);
}

static void
the_deadline_ends_the_grace(void **state)
{
	struct round r = begun(&policy);

	(void)state;
	invite(&r, 3, T0);
	report(&r, DEADLINE - 20);
	report(&r, DEADLINE - 10);
	assert_int_equal(r.state, ROUND_GRACE);
	assert_int_equal(round_next_ms(&r), DEADLINE);
	assert_int_equal(step(&r, ROUND_TICK, DEADLINE - 1), 0);
	assert_int_equal(step(&r, ROUND_TICK, DEADLINE), ROUND_DO_FOLD);
	assert_int_equal(r.accepted, 2);
}

/* The second opening keeps the report, invites afresh, and takes the first one's late deltas as additional. */
static void
abandoned_and_opened_again(void **state)
{
	struct round r = begun(&policy);

	(void)state;
	invite(&r, 4, T0);
	report(&r, T0 + 1);
	assert_int_equal(step(&r, ROUND_TICK, DEADLINE), ROUND_DO_REOPEN);
	assert_int_equal(r.reopened, 1);
	assert_int_equal(r.invited, 1);
	assert_int_equal(r.opened_ms, T0);
	assert_int_equal(round_next_ms(&r), DEADLINE + policy.deadline_ms);
	invite(&r, 2, DEADLINE + 1);
	assert_int_equal(round_step(&r, ROUND_TAKE, 1, DEADLINE + 2), ROUND_DO_TAKE);
	assert_int_equal(step(&r, ROUND_ACCEPTED, DEADLINE + 3), 0);
	assert_int_equal(r.state, ROUND_GRACE);
	/* One reported before, one late, two invited: the places are full. */
	assert_int_equal(r.invited, 4);
	assert_int_equal(step(&r, ROUND_ASK, DEADLINE + 4), 0);
	assert_int_equal(report(&r, DEADLINE + 5), ROUND_DO_FOLD);
}

/* A late delta must not hide that an invited device let the second opening down. */
static void
late_deltas_do_not_answer_for_others(void **state)
{
	const struct round_policy p = {
	    .goal = 4, .quorum = 4, .invite_max = 4, .deadline_ms = 1000, .grace_ms = 100};
	struct round r = begun(&p);

	(void)state;
	invite(&r, 2, T0);
	assert_int_equal(step(&r, ROUND_TICK, DEADLINE), ROUND_DO_REOPEN);
	round_step(&r, ROUND_TAKE, 1, DEADLINE + 1);
	step(&r, ROUND_ACCEPTED, DEADLINE + 1);
	invite(&r, 1, DEADLINE + 2);
	assert_int_equal(step(&r, ROUND_TICK, DEADLINE + p.deadline_ms), ROUND_DO_REOPEN);
	assert_int_equal(r.reopened, 2);
	assert_int_equal(r.invited, 1);
}

/* An empty opening is not an abandoned one, also when an earlier opening saw devices give up. */
static void
nobody_came(void **state)
{
	struct round r = begun(&policy);

	(void)state;
	assert_int_equal(step(&r, ROUND_TICK, DEADLINE), 0);
	assert_int_equal(r.reopened, 0);
	invite(&r, 1, DEADLINE + 1);
	step(&r, ROUND_GAVE_UP, DEADLINE + 2);
	assert_int_equal(step(&r, ROUND_TICK, DEADLINE + 1000), ROUND_DO_REOPEN);
	assert_int_equal(step(&r, ROUND_TICK, DEADLINE + 2000), 0);
	assert_int_equal(step(&r, ROUND_TICK, DEADLINE + 3000), 0);
	assert_int_equal(r.reopened, 1);
	assert_int_equal(r.aborted, 1);
	assert_int_equal(round_next_ms(&r), DEADLINE + 4000);
}

/* A device that gave up and delivers after all takes a place again. */
static void
given_up_and_delivered(void **state)
{
	struct round r = begun(&policy);

	(void)state;
	invite(&r, 4, T0);
	step(&r, ROUND_GAVE_UP, T0 + 1);
	invite(&r, 1, T0 + 2);
	assert_int_equal(round_step(&r, ROUND_TAKE, 1, T0 + 3), ROUND_DO_TAKE);
	step(&r, ROUND_ACCEPTED, T0 + 3);
	assert_int_equal(r.invited, 5);
	assert_int_equal(step(&r, ROUND_ASK, T0 + 4), 0);
}

/* --- a base that gives no numbers */

/* As many as the quorum say so, and nobody is at work: the round is over, with what it has, and nothing is left of that in the next. */
static void
no_numbers(void **state)
{
	struct round r = begun(&policy);

	(void)state;
	invite(&r, 4, T0);
	assert_int_equal(report(&r, T0 + 1), 0);
	step(&r, ROUND_GAVE_UP, T0 + 2);
	assert_int_equal(round_step(&r, ROUND_GAVE_UP, 1, T0 + 3), 0);
	assert_int_equal(r.state, ROUND_OPEN);
	assert_int_equal(round_step(&r, ROUND_GAVE_UP, 1, T0 + 4), ROUND_DO_FOLD);
	assert_int_equal(r.no_numbers, 2);
	assert_true(r.accepted < policy.quorum);
	step(&r, ROUND_NOT_FINITE, T0 + 5);
	step(&r, ROUND_BEGIN, T0 + 5);
	assert_int_equal(r.no_numbers, 0);
	/* What is on its way is waited for, and may make the quorum; a pause holds the end. */
	invite(&r, 3, T0 + 6);
	assert_int_equal(step(&r, ROUND_TAKE, T0 + 7), ROUND_DO_TAKE);
	step(&r, ROUND_PAUSE, T0 + 7);
	round_step(&r, ROUND_GAVE_UP, 1, T0 + 8);
	assert_int_equal(round_step(&r, ROUND_GAVE_UP, 1, T0 + 8), 0);
	assert_int_equal(r.state, ROUND_OPEN);
	assert_int_equal(step(&r, ROUND_RESUME, T0 + 9), 0);
	assert_int_equal(r.state, ROUND_CLOSING);
	assert_int_equal(step(&r, ROUND_LOST, T0 + 10), ROUND_DO_FOLD);
}

/* Devices whose own data give no numbers, or that lie, do not end a round that the others go on with. */
static void
others_go_on(void **state)
{
	struct round r = begun(&policy);

	(void)state;
	invite(&r, 4, T0);
	round_step(&r, ROUND_GAVE_UP, 1, T0 + 1);
	assert_int_equal(round_step(&r, ROUND_GAVE_UP, 1, T0 + 1), 0);
	assert_int_equal(r.state, ROUND_OPEN);
	assert_int_equal(report(&r, T0 + 2), 0);
	assert_int_equal(report(&r, T0 + 3), 0);
	assert_int_equal(r.state, ROUND_GRACE);
	assert_int_equal(step(&r, ROUND_TICK, T0 + 103), ROUND_DO_FOLD);
	assert_true(r.accepted >= policy.quorum);
	/* The last at work gives up, for whatever reason. */
	r = begun(&policy);
	invite(&r, 3, T0);
	round_step(&r, ROUND_GAVE_UP, 1, T0 + 1);
	assert_int_equal(round_step(&r, ROUND_GAVE_UP, 1, T0 + 1), 0);
	assert_int_equal(step(&r, ROUND_GAVE_UP, T0 + 2), ROUND_DO_FOLD);
	/* Others take the places that become free: there is an end to that, and the deadline is another. */
	r = begun(&policy);
	invite(&r, 4, T0);
	for (uint32_t i = 1; i < policy.invite_max; i++) {
		assert_int_equal(round_step(&r, ROUND_GAVE_UP, 1, T0 + 1), 0);
		assert_int_equal(step(&r, ROUND_ASK, T0 + 1), ROUND_DO_INVITE);
	}
	struct round late = r;
	assert_int_equal(round_step(&r, ROUND_GAVE_UP, 1, T0 + 2), ROUND_DO_FOLD);
	assert_int_equal(step(&late, ROUND_TICK, DEADLINE), ROUND_DO_FOLD);
}

/* Fewer than the quorum do not end a round that others can finish; at the deadline those who reported count with them. */
static void
few_without_numbers(void **state)
{
	struct round r = begun(&policy);

	(void)state;
	invite(&r, 4, T0);
	round_step(&r, ROUND_GAVE_UP, 1, T0 + 1);
	assert_int_equal(report(&r, T0 + 2), 0);
	assert_int_equal(step(&r, ROUND_TICK, DEADLINE - 1), 0);
	assert_int_equal(step(&r, ROUND_TICK, DEADLINE), ROUND_DO_FOLD);
	assert_true(r.accepted == 1 && r.no_numbers == 1);
	/* Not on the word of those that may be hostile. */
	struct round_policy wary = policy;
	wary.hostile = 1;
	r = begun(&wary);
	invite(&r, 4, T0);
	round_step(&r, ROUND_GAVE_UP, 1, T0 + 1);
	assert_int_equal(report(&r, T0 + 2), 0);
	assert_int_equal(step(&r, ROUND_TICK, DEADLINE), ROUND_DO_REOPEN);
	/* Too few of both: it opens again, and whoever said so may be asked again. */
	r = begun(&policy);
	invite(&r, 4, T0);
	round_step(&r, ROUND_GAVE_UP, 1, T0 + 1);
	assert_int_equal(step(&r, ROUND_TICK, DEADLINE), ROUND_DO_REOPEN);
	assert_int_equal(r.no_numbers, 0);
	assert_int_equal(r.aborted, 1);
	/* Enough reports: a model is made whatever some say. */
	r = begun(&policy);
	invite(&r, 4, T0);
	round_step(&r, ROUND_GAVE_UP, 1, T0 + 1);
	report(&r, T0 + 2);
	report(&r, T0 + 3);
	assert_int_equal(round_step(&r, ROUND_GAVE_UP, 1, T0 + 4), 0);
	assert_int_equal(r.state, ROUND_GRACE);
}

/* --- pick: sample */

static void
gather_and_draw(void **state)
{
	struct round r = begun(&sampling);

	(void)state;
	assert_int_equal(r.state, ROUND_GATHER);
	assert_int_equal(round_next_ms(&r), DEADLINE);
	assert_int_equal(step(&r, ROUND_ASK, T0), 0);
	assert_int_equal(step(&r, ROUND_ASK, T0 + 40), 0);
	assert_int_equal(round_next_ms(&r), DRAW_AT);
	assert_int_equal(step(&r, ROUND_TICK, DRAW_AT - 1), 0);
	assert_int_equal(step(&r, ROUND_TICK, DRAW_AT), ROUND_DO_DRAW);
	assert_int_equal(round_step(&r, ROUND_DRAWN, 2, DRAW_AT), 0);
	assert_int_equal(r.state, ROUND_OPEN);
	/* Places that the draw left free go to the next that ask. */
	invite(&r, 2, DRAW_AT + 1);
	assert_int_equal(step(&r, ROUND_ASK, DRAW_AT + 2), 0);
	assert_int_equal(round_next_ms(&r), DRAW_AT + sampling.deadline_ms);
}

/* Gathering that outlasts the deadline still ends in a draw, and the drawn have the whole deadline. */
static void
the_deadline_runs_from_the_draw(void **state)
{
	struct round_policy slow = sampling;

	(void)state;
	slow.sample_ms = 5000;
	struct round r = begun(&slow);
	step(&r, ROUND_ASK, T0 + 900);
	assert_int_equal(step(&r, ROUND_TICK, DEADLINE), 0);
	assert_int_equal(round_next_ms(&r), T0 + 5900);
	assert_int_equal(step(&r, ROUND_TICK, T0 + 5900), ROUND_DO_DRAW);
	assert_int_equal(round_step(&r, ROUND_DRAWN, 1, T0 + 5900), 0);
	assert_int_equal(step(&r, ROUND_TICK, T0 + 6899), 0);
	assert_int_equal(step(&r, ROUND_TICK, T0 + 6900), ROUND_DO_REOPEN);
	assert_int_equal(r.state, ROUND_GATHER);
	assert_int_equal(round_next_ms(&r), T0 + 7900);
}

/* While late deltas close a gathering round, there is nothing to draw. */
static void
quorum_while_gathering(void **state)
{
	struct round r = begun(&sampling);

	(void)state;
	step(&r, ROUND_ASK, T0);
	round_step(&r, ROUND_TAKE, 1, T0 + 1);
	round_step(&r, ROUND_TAKE, 1, T0 + 1);
	step(&r, ROUND_ACCEPTED, T0 + 2);
	assert_int_equal(step(&r, ROUND_ACCEPTED, T0 + 2), 0);
	assert_int_equal(r.state, ROUND_GRACE);
	assert_int_equal(step(&r, ROUND_TICK, DRAW_AT), 0);
	assert_int_equal(step(&r, ROUND_TICK, T0 + 102), ROUND_DO_FOLD);
}

static void
a_pause_keeps_the_gathering(void **state)
{
	struct round r = begun(&sampling);

	(void)state;
	step(&r, ROUND_ASK, T0);
	step(&r, ROUND_PAUSE, T0 + 1);
	assert_int_equal(step(&r, ROUND_TICK, DRAW_AT), 0);
	assert_int_equal(round_next_ms(&r), UINT64_MAX);
	assert_int_equal(step(&r, ROUND_RESUME, DEADLINE + 70), ROUND_DO_DRAW);
	assert_int_equal(round_step(&r, ROUND_DRAWN, 1, DEADLINE + 70), 0);
	assert_int_equal(round_next_ms(&r), DEADLINE + 70 + sampling.deadline_ms);
}

/* --- pause, failures, restart */

static void
pause_and_resume(void **state)
{
	struct round r = begun(&policy);

	(void)state;
	invite(&r, 4, T0);
	step(&r, ROUND_PAUSE, T0 + 1);
	step(&r, ROUND_PAUSE, T0 + 2);
	assert_string_equal(round_state_name(&r), "paused");
	assert_int_equal(round_next_ms(&r), UINT64_MAX);
	/* Deltas come in all the time; the round notices when it runs again. */
	assert_int_equal(report(&r, DEADLINE + 1), 0);
	assert_int_equal(report(&r, DEADLINE + 2), 0);
	assert_int_equal(r.state, ROUND_OPEN);
	assert_int_equal(step(&r, ROUND_RESUME, DEADLINE + 500), 0);
	assert_string_equal(round_state_name(&r), "grace");
	assert_int_equal(round_next_ms(&r), DEADLINE + 600);
	assert_int_equal(r.deadline_ms, DEADLINE + 500 + policy.deadline_ms);
	/* Resuming what runs moves no deadline. */
	assert_int_equal(step(&r, ROUND_RESUME, DEADLINE + 590), 0);
	assert_int_equal(step(&r, ROUND_TICK, DEADLINE + 600), ROUND_DO_FOLD);
}

/* A pause in the grace stops its clock; all of it is granted again. */
static void
pause_in_grace(void **state)
{
	struct round r = begun(&policy);

	(void)state;
	invite(&r, 4, T0);
	report(&r, T0 + 1);
	report(&r, QUORUM_AT);
	step(&r, ROUND_PAUSE, GRACE_END - 1);
	assert_int_equal(step(&r, ROUND_TICK, GRACE_END), 0);
	step(&r, ROUND_RESUME, GRACE_END + 50);
	assert_int_equal(r.state, ROUND_GRACE);
	assert_int_equal(round_next_ms(&r), GRACE_END + 150);
}

/* Folds one round with the given outcome; returns the actions. */
static unsigned
fold(struct round *r, enum round_event outcome)
{
	while (r->state != ROUND_FOLDING) {
		invite(r, 1, T0);
		report(r, T0);
	}
	return step(r, outcome, T0);
}

static void
failures_in_a_row_pause(void **state)
{
	struct round r = begun(&policy);

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fold(&r, ROUND_NOT_FINITE), ROUND_DO_BEGIN);
		step(&r, ROUND_BEGIN, T0);
	}
	/* A good one in between starts the count over. */
	assert_int_equal(fold(&r, ROUND_FOLDED), ROUND_DO_BEGIN);
	for (int i = 0; i < 2; i++) {
		step(&r, ROUND_BEGIN, T0);
		assert_int_equal(fold(&r, ROUND_NOT_FINITE), ROUND_DO_BEGIN);
	}
	step(&r, ROUND_BEGIN, T0);
	assert_int_equal(fold(&r, ROUND_NOT_FINITE), ROUND_DO_BEGIN | ROUND_DO_PAUSE);
	step(&r, ROUND_BEGIN, T0);
	assert_string_equal(round_state_name(&r), "paused");
	assert_int_equal(step(&r, ROUND_ASK, T0), 0);
	/* Someone resumed: three more chances. */
	step(&r, ROUND_RESUME, T0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fold(&r, ROUND_NOT_FINITE), ROUND_DO_BEGIN);
		step(&r, ROUND_BEGIN, T0);
	}
	assert_int_equal(fold(&r, ROUND_NOT_FINITE), ROUND_DO_BEGIN | ROUND_DO_PAUSE);
}

static void
no_limit_of_failures(void **state)
{
	struct round_policy p = policy;

	(void)state;
	p.failures = 0;
	struct round r = begun(&p);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(fold(&r, ROUND_NOT_FINITE), ROUND_DO_BEGIN);
		step(&r, ROUND_BEGIN, T0);
	}
	assert_false(r.paused);
}

/* The fold itself could not be done: the round goes back to what it had and waits for a person. */
static void
a_fold_to_be_repeated(void **state)
{
	struct round r = begun(&policy);

	(void)state;
	invite(&r, 3, T0);
	report(&r, T0);
	report(&r, T0);
	assert_int_equal(report(&r, T0), ROUND_DO_FOLD);
	step(&r, ROUND_PAUSE, T0 + 5);
	assert_int_equal(round_step(&r, ROUND_BEGIN, r.accepted, T0 + 5), 0);
	assert_int_equal(r.accepted, 3);
	assert_int_equal(step(&r, ROUND_TICK, DEADLINE + 9000), 0);
	assert_int_equal(step(&r, ROUND_RESUME, DEADLINE + 9000), ROUND_DO_FOLD);
}

static void
restart_in_the_middle(void **state)
{
	struct round r;

	(void)state;
	round_init(&r, &policy, 0);
	assert_int_equal(round_step(&r, ROUND_BEGIN, 1, T0), 0);
	assert_int_equal(r.invited, 1);
	invite(&r, 2, T0 + 1);
	/* A device invited before the restart, then two invited after it. */
	assert_int_equal(round_step(&r, ROUND_TAKE, 1, T0 + 2), ROUND_DO_TAKE);
	assert_int_equal(r.invited, 4);
	assert_int_equal(step(&r, ROUND_ASK, T0 + 2), 0);
	assert_int_equal(step(&r, ROUND_ACCEPTED, T0 + 3), 0);
	assert_int_equal(report(&r, T0 + 4), ROUND_DO_FOLD);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_round_by_the_goal),
	    cmocka_unit_test(closing_waits_for_the_disk),
	    cmocka_unit_test(the_deadline_ends_the_grace),
	    cmocka_unit_test(abandoned_and_opened_again),
	    cmocka_unit_test(late_deltas_do_not_answer_for_others),
	    cmocka_unit_test(nobody_came),
	    cmocka_unit_test(given_up_and_delivered),
	    cmocka_unit_test(no_numbers),
	    cmocka_unit_test(others_go_on),
	    cmocka_unit_test(few_without_numbers),
	    cmocka_unit_test(gather_and_draw),
	    cmocka_unit_test(the_deadline_runs_from_the_draw),
	    cmocka_unit_test(quorum_while_gathering),
	    cmocka_unit_test(a_pause_keeps_the_gathering),
	    cmocka_unit_test(pause_and_resume),
	    cmocka_unit_test(pause_in_grace),
	    cmocka_unit_test(failures_in_a_row_pause),
	    cmocka_unit_test(no_limit_of_failures),
	    cmocka_unit_test(a_fold_to_be_repeated),
	    cmocka_unit_test(restart_in_the_middle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
