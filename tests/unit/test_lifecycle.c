/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lifecycle.h"

#define NOW 1000.0
#define TASK_UNTIL 1060.0
#define START_UNTIL 1500.0
#define GRACE 30.0
#define IDLE 7.0
#define LOSE_KILL (LIFECYCLE_KILL | LIFECYCLE_LOSE)
#define LOSE_TERM (LIFECYCLE_TERMINATE | LIFECYCLE_LOSE)
#define NONE \
	{ \
		LIFECYCLE_STATES, 0 \
	}

/* The table of README.md, state by state; NONE: nothing changes. Events in the order of enum lifecycle_event. */
static const struct {
	unsigned next, actions;
} table[LIFECYCLE_STATES][LIFECYCLE_EVENTS] = {
    /* started, ready, task, dropped, done, wrong, stop, due, leave, ended */
    [LIFECYCLE_ABSENT] = {{LIFECYCLE_STARTING, 0}, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE,
	NONE},
    [LIFECYCLE_STARTING] = {NONE, {LIFECYCLE_READY, 0}, NONE, {LIFECYCLE_LATE, 0}, NONE,
	{LIFECYCLE_KILLED, LOSE_KILL}, {LIFECYCLE_URGED, LOSE_TERM},
	{LIFECYCLE_LATE, LIFECYCLE_LOSE}, {LIFECYCLE_LEAVING, LIFECYCLE_CLOSE | LIFECYCLE_LOSE},
	{LIFECYCLE_ABSENT, LIFECYCLE_LOSE}},
    [LIFECYCLE_LATE] = {NONE, {LIFECYCLE_READY, 0}, {LIFECYCLE_STARTING, 0}, NONE, NONE,
	{LIFECYCLE_KILLED, LIFECYCLE_KILL}, NONE, {LIFECYCLE_URGED, LIFECYCLE_TERMINATE},
	{LIFECYCLE_LEAVING, LIFECYCLE_CLOSE}, {LIFECYCLE_ABSENT, 0}},
    [LIFECYCLE_READY] = {NONE, NONE, {LIFECYCLE_WORKING, LIFECYCLE_GIVE}, {LIFECYCLE_READY, 0},
	NONE, {LIFECYCLE_KILLED, LIFECYCLE_KILL}, NONE, {LIFECYCLE_LEAVING, LIFECYCLE_CLOSE},
	{LIFECYCLE_LEAVING, LIFECYCLE_CLOSE}, {LIFECYCLE_ABSENT, 0}},
    [LIFECYCLE_WORKING] = {NONE, NONE, NONE, NONE, {LIFECYCLE_READY, LIFECYCLE_TAKE},
	{LIFECYCLE_KILLED, LOSE_KILL}, {LIFECYCLE_PARTING, LIFECYCLE_TERMINATE},
	{LIFECYCLE_FINISHING, LIFECYCLE_FINISH}, NONE, {LIFECYCLE_ABSENT, LIFECYCLE_LOSE}},
    [LIFECYCLE_FINISHING] = {NONE, NONE, NONE, NONE, {LIFECYCLE_READY, LIFECYCLE_TAKE},
	{LIFECYCLE_KILLED, LOSE_KILL}, {LIFECYCLE_PARTING, LIFECYCLE_TERMINATE},
	{LIFECYCLE_KILLED, LOSE_KILL}, NONE, {LIFECYCLE_ABSENT, LIFECYCLE_LOSE}},
    [LIFECYCLE_PARTING] = {NONE, NONE, NONE, NONE, {LIFECYCLE_URGED, LIFECYCLE_TAKE},
	{LIFECYCLE_KILLED, LOSE_KILL}, NONE, {LIFECYCLE_KILLED, LOSE_KILL}, NONE,
	{LIFECYCLE_ABSENT, LIFECYCLE_LOSE}},
    [LIFECYCLE_LEAVING] = {NONE, NONE, NONE, NONE, NONE, {LIFECYCLE_KILLED, LIFECYCLE_KILL}, NONE,
	{LIFECYCLE_URGED, LIFECYCLE_TERMINATE}, NONE, {LIFECYCLE_ABSENT, 0}},
    [LIFECYCLE_URGED] = {NONE, NONE, NONE, NONE, NONE, {LIFECYCLE_KILLED, LIFECYCLE_KILL}, NONE,
	{LIFECYCLE_KILLED, LIFECYCLE_KILL}, NONE, {LIFECYCLE_ABSENT, 0}},
    [LIFECYCLE_KILLED] = {NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE,
	{LIFECYCLE_ABSENT, 0}},
};

static double
limit(unsigned state)
{
	static const double limits[LIFECYCLE_STATES] = {
	    [LIFECYCLE_STARTING] = TASK_UNTIL,
	    [LIFECYCLE_LATE] = START_UNTIL,
	    [LIFECYCLE_READY] = NOW + IDLE,
	    [LIFECYCLE_WORKING] = TASK_UNTIL,
	    [LIFECYCLE_FINISHING] = NOW + GRACE,
	    [LIFECYCLE_PARTING] = NOW + GRACE,
	    [LIFECYCLE_LEAVING] = NOW + LIFECYCLE_LEAVE_S,
	    [LIFECYCLE_URGED] = NOW + LIFECYCLE_LEAVE_S,
	};

	return limits[state];
}

static void
test_rows(void **state)
{
	(void)state;
	for (unsigned from = 0; from < LIFECYCLE_STATES; from++)
		for (unsigned event = 0; event < LIFECYCLE_EVENTS; event++) {
			struct lifecycle c = {.state = from,
			    .until = 1.5,
			    .task_until = TASK_UNTIL,
			    .start_until = START_UNTIL,
			    .grace_s = GRACE,
			    .idle_s = IDLE};
			unsigned next = table[from][event].next;
			unsigned actions = lifecycle_step(&c, event, NOW);
			if (actions != table[from][event].actions ||
			    c.state != (next == LIFECYCLE_STATES ? from : next))
				fail_msg("%s, event %u: %s, actions %#x", lifecycle_name(from),
				    event, lifecycle_name(c.state), actions);
			double until = next == LIFECYCLE_STATES ? 1.5 : limit(next);
			if (c.until < until || c.until > until)
				fail_msg(
				    "%s, event %u: until %g", lifecycle_name(from), event, c.until);
		}
}

/* Whatever it does, it comes to its end by the clock alone once it was told to leave. */
static void
test_ends(void **state)
{
	(void)state;
	for (unsigned from = LIFECYCLE_STARTING; from < LIFECYCLE_STATES; from++) {
		struct lifecycle c = {.state = from, .until = NOW, .grace_s = GRACE};
		double now = NOW;
		lifecycle_step(&c, LIFECYCLE_LEAVE, now);
		for (int i = 0; i < 4 && c.state != LIFECYCLE_KILLED; i++) {
			now = c.until > 0 ? c.until : now;
			lifecycle_step(&c, LIFECYCLE_DUE, now);
		}
		assert_int_equal(c.state, LIFECYCLE_KILLED);
		assert_true(now <= NOW + GRACE + 2 * LIFECYCLE_LEAVE_S);
	}
}

static void
test_due(void **state)
{
	struct lifecycle c = {.state = LIFECYCLE_WORKING};

	(void)state;
	assert_false(lifecycle_due(&c, 1e9));
	c.until = NOW;
	assert_false(lifecycle_due(&c, NOW - 0.1));
	assert_true(lifecycle_due(&c, NOW));
	/* It may wait for ever. */
	c.state = LIFECYCLE_STARTING;
	lifecycle_step(&c, LIFECYCLE_IS_READY, NOW);
	assert_false(lifecycle_due(&c, 1e9));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rows),
	    cmocka_unit_test(test_ends),
	    cmocka_unit_test(test_due),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
