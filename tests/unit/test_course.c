/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "course.h"

#define NOW 1000.0
#define TASK_UNTIL 1060.0
#define START_UNTIL 1500.0
#define GRACE 30.0
#define IDLE 7.0
#define LOSE_KILL (COURSE_KILL | COURSE_LOSE)
#define LOSE_TERM (COURSE_TERMINATE | COURSE_LOSE)
#define NONE \
	{ \
		COURSE_STATES, 0 \
	}

/* The table of README.md, state by state; NONE: nothing changes. Events in the order of enum course_event. */
static const struct {
	unsigned next, actions;
} table[COURSE_STATES][COURSE_EVENTS] = {
    /* started, ready, task, dropped, done, wrong, stop, due, leave, ended */
    [COURSE_ABSENT] = {{COURSE_STARTING, 0}, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE},
    [COURSE_STARTING] = {NONE, {COURSE_READY, 0}, NONE, {COURSE_LATE, 0}, NONE,
	{COURSE_KILLED, LOSE_KILL}, {COURSE_URGED, LOSE_TERM}, {COURSE_LATE, COURSE_LOSE},
	{COURSE_LEAVING, COURSE_CLOSE | COURSE_LOSE}, {COURSE_ABSENT, COURSE_LOSE}},
    [COURSE_LATE] = {NONE, {COURSE_READY, 0}, {COURSE_STARTING, 0}, NONE, NONE,
	{COURSE_KILLED, COURSE_KILL}, NONE, {COURSE_URGED, COURSE_TERMINATE},
	{COURSE_LEAVING, COURSE_CLOSE}, {COURSE_ABSENT, 0}},
    [COURSE_READY] = {NONE, NONE, {COURSE_WORKING, COURSE_GIVE}, {COURSE_READY, 0}, NONE,
	{COURSE_KILLED, COURSE_KILL}, NONE, {COURSE_LEAVING, COURSE_CLOSE},
	{COURSE_LEAVING, COURSE_CLOSE}, {COURSE_ABSENT, 0}},
    [COURSE_WORKING] = {NONE, NONE, NONE, NONE, {COURSE_READY, COURSE_TAKE},
	{COURSE_KILLED, LOSE_KILL}, {COURSE_PARTING, COURSE_TERMINATE},
	{COURSE_FINISHING, COURSE_FINISH}, NONE, {COURSE_ABSENT, COURSE_LOSE}},
    [COURSE_FINISHING] = {NONE, NONE, NONE, NONE, {COURSE_READY, COURSE_TAKE},
	{COURSE_KILLED, LOSE_KILL}, {COURSE_PARTING, COURSE_TERMINATE}, {COURSE_KILLED, LOSE_KILL},
	NONE, {COURSE_ABSENT, COURSE_LOSE}},
    [COURSE_PARTING] = {NONE, NONE, NONE, NONE, {COURSE_URGED, COURSE_TAKE},
	{COURSE_KILLED, LOSE_KILL}, NONE, {COURSE_KILLED, LOSE_KILL}, NONE,
	{COURSE_ABSENT, COURSE_LOSE}},
    [COURSE_LEAVING] = {NONE, NONE, NONE, NONE, NONE, {COURSE_KILLED, COURSE_KILL}, NONE,
	{COURSE_URGED, COURSE_TERMINATE}, NONE, {COURSE_ABSENT, 0}},
    [COURSE_URGED] = {NONE, NONE, NONE, NONE, NONE, {COURSE_KILLED, COURSE_KILL}, NONE,
	{COURSE_KILLED, COURSE_KILL}, NONE, {COURSE_ABSENT, 0}},
    [COURSE_KILLED] = {NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, {COURSE_ABSENT, 0}},
};

static double
limit(unsigned state)
{
	static const double limits[COURSE_STATES] = {
	    [COURSE_STARTING] = TASK_UNTIL,
	    [COURSE_LATE] = START_UNTIL,
	    [COURSE_READY] = NOW + IDLE,
	    [COURSE_WORKING] = TASK_UNTIL,
	    [COURSE_FINISHING] = NOW + GRACE,
	    [COURSE_PARTING] = NOW + GRACE,
	    [COURSE_LEAVING] = NOW + COURSE_LEAVE_S,
	    [COURSE_URGED] = NOW + COURSE_LEAVE_S,
	};

	return limits[state];
}

static void
test_rows(void **state)
{
	(void)state;
	for (unsigned from = 0; from < COURSE_STATES; from++)
		for (unsigned event = 0; event < COURSE_EVENTS; event++) {
			struct course c = {.state = from,
			    .until = 1.5,
			    .task_until = TASK_UNTIL,
			    .start_until = START_UNTIL,
			    .grace_s = GRACE,
			    .idle_s = IDLE};
			unsigned next = table[from][event].next;
			unsigned actions = course_step(&c, event, NOW);
			if (actions != table[from][event].actions ||
			    c.state != (next == COURSE_STATES ? from : next))
				fail_msg("%s, event %u: %s, actions %#x", course_name(from), event,
				    course_name(c.state), actions);
			double until = next == COURSE_STATES ? 1.5 : limit(next);
			if (c.until < until || c.until > until)
				fail_msg(
				    "%s, event %u: until %g", course_name(from), event, c.until);
		}
}

/* Whatever it does, it comes to its end by the clock alone once it was told to leave. */
static void
test_ends(void **state)
{
	(void)state;
	for (unsigned from = COURSE_STARTING; from < COURSE_STATES; from++) {
		struct course c = {.state = from, .until = NOW, .grace_s = GRACE};
		double now = NOW;
		course_step(&c, COURSE_LEAVE, now);
		for (int i = 0; i < 4 && c.state != COURSE_KILLED; i++) {
			now = c.until > 0 ? c.until : now;
			course_step(&c, COURSE_DUE, now);
		}
		assert_int_equal(c.state, COURSE_KILLED);
		assert_true(now <= NOW + GRACE + 2 * COURSE_LEAVE_S);
	}
}

static void
test_due(void **state)
{
	struct course c = {.state = COURSE_WORKING};

	(void)state;
	assert_false(course_due(&c, 1e9));
	c.until = NOW;
	assert_false(course_due(&c, NOW - 0.1));
	assert_true(course_due(&c, NOW));
	/* It may wait for ever. */
	c.state = COURSE_STARTING;
	course_step(&c, COURSE_IS_READY, NOW);
	assert_false(course_due(&c, 1e9));
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
