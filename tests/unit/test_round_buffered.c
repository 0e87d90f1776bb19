/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "round.h"

/* Rounds that take what arrives, row by row: a buffer of three, four tasks at a time. */
#define T0 10000
#define DEADLINE (T0 + 1000)
#define MID (T0 + 300)
static const struct round_policy policy = {.goal = 3,
    .quorum = 2,
    .invite_max = 4,
    .deadline_ms = 1000,
    .late = true,
    .buffered = true,
    .failures = 3};
static const char *const state_names[] = {
    "idle", "gather", "open", "grace", "closing", "folding", "ended"};

struct row {
	const char *what;
	const char
	    *before; /* STATE OUT ACCEPTED COMMITTING NEXT_ACCEPTED NEXT_COMMITTING [paused] */
	enum round_event event;
	uint32_t arg;
	uint64_t now;
	const char *after;
	unsigned actions;
};

#define TAKEN ROUND_DO_TAKE
#define TAKEN_NEXT (ROUND_DO_TAKE | ROUND_DO_TAKE_NEXT)
static const struct row rows[] = {
    {"the first", "idle", ROUND_BEGIN, 0, T0, "open", 0},
    {"what it had before a restart", "idle", ROUND_BEGIN, 2, T0, "open 0 2", 0},
    {"all of it", "idle", ROUND_BEGIN, 3, T0, "folding 0 3", ROUND_DO_FOLD},
    {"and what the next one has", "folding 0 3", ROUND_EARLY, 2, T0, "folding 0 3 0 2", 0},
    {"tasks that are out since before it", "open 0 2", ROUND_OUT, 4, T0, "open 4 2", 0},
    {"also of a buffer that is full", "folding 0 3", ROUND_OUT, 2, T0, "folding 2 3", 0},
    {"a task", "open 3 1", ROUND_ASK, 0, MID, "open 4 1", ROUND_DO_INVITE},
    {"no more than four out", "open 4 1", ROUND_ASK, 0, MID, "open 4 1", 0},
    {"those that are answered are not out", "open 3 2 0 1", ROUND_ASK, 0, MID, "open 4 2 0 1",
	ROUND_DO_INVITE},
    {"not while paused", "open 3 1 paused", ROUND_ASK, 0, MID, "open 3 1 paused", 0},
    {"not while it folds", "folding 1 3", ROUND_ASK, 0, MID, "folding 1 3", 0},
    {"a task is answered", "open 4 1", ROUND_TAKE, 0, MID, "open 3 1 1", TAKEN},
    {"one whose place was free", "open 4 1", ROUND_TAKE, ROUND_TAKE_FRESH, MID, "open 4 1 1",
	TAKEN},
    {"one that is to wait for the next", "open 4 1", ROUND_TAKE, ROUND_TAKE_NEXT, MID,
	"open 3 1 0 0 1", TAKEN_NEXT},
    {"taken while paused", "open 4 1 paused", ROUND_TAKE, 0, MID, "open 3 1 1 paused", TAKEN},
    {"one too late", "closing 2 2 1", ROUND_TAKE, 0, MID, "closing 1 2 1 0 1", TAKEN_NEXT},
    {"one while it folds", "folding 2 3", ROUND_TAKE, ROUND_TAKE_FRESH, MID, "folding 2 3 0 0 1",
	TAKEN_NEXT},
    {"durable", "open 1 1 1", ROUND_ACCEPTED, 0, MID, "open 1 2", 0},
    {"the goal", "open 1 2 1", ROUND_ACCEPTED, 0, MID, "folding 1 3", ROUND_DO_FOLD},
    {"the goal while another is on its way", "open 1 2 2", ROUND_ACCEPTED, 0, MID, "closing 1 3 1",
	0},
    {"which is durable", "closing 1 3 1", ROUND_ACCEPTED, 0, MID, "folding 1 4", ROUND_DO_FOLD},
    {"or lost", "closing 1 3 1", ROUND_LOST, 0, MID, "folding 2 3", ROUND_DO_FOLD},
    {"of the next", "folding 1 3 0 0 1", ROUND_ACCEPTED, 1, MID, "folding 1 3 0 1", 0},
    {"lost of the next", "folding 1 3 0 0 1", ROUND_LOST, 1, MID, "folding 2 3", 0},
    {"its place is free then", "folding 2 3", ROUND_EXPIRED, 0, MID, "folding 1 3", 0},
    {"out for too long", "open 2 1", ROUND_EXPIRED, 0, MID, "open 1 1", 0},
    {"nobody is out", "open 0 1", ROUND_EXPIRED, 0, MID, "open 0 1", 0},
    {"given up", "open 2 1", ROUND_GAVE_UP, 0, MID, "open 1 1", 0},
    {"given up while it folds", "folding 2 3", ROUND_GAVE_UP, 0, MID, "folding 1 3", 0},
    {"nothing for a deadline", "open 2 1", ROUND_TICK, 0, DEADLINE, "open 2 1", 0},
    {"the quorum before it", "open 2 2", ROUND_TICK, 0, DEADLINE - 1, "open 2 2", 0},
    {"the quorum at it", "open 2 2", ROUND_TICK, 0, DEADLINE, "folding 2 2", ROUND_DO_FOLD},
    {"not while one is on its way", "open 2 1 1", ROUND_TICK, 0, DEADLINE, "open 2 1 1", 0},
    {"which makes the quorum", "open 2 1 1", ROUND_ACCEPTED, 0, DEADLINE, "folding 2 2",
	ROUND_DO_FOLD},
    {"not while paused", "open 2 2 paused", ROUND_TICK, 0, DEADLINE, "open 2 2 paused", 0},
    {"folded", "folding 2 3 0 1 1", ROUND_FOLDED, 0, MID, "folding 2 3 0 1 1", ROUND_DO_BEGIN},
    {"the next has what came, and the tasks out", "folding 2 3 0 1 1", ROUND_BEGIN, 0, MID,
	"open 2 1 1", 0},
    {"that is a buffer already", "folding 2 3 0 3", ROUND_BEGIN, 0, MID, "folding 2 3",
	ROUND_DO_FOLD},
    {"the same again, for its fold failed", "folding 2 3 0 1 1 paused", ROUND_BEGIN, 3, MID,
	"open 2 3 0 1 1 paused", 0},
    {"stopped", "open 2 1", ROUND_STOP, 0, MID, "ended 2 1", 0},
};

static struct round
machine(const char *text)
{
	struct round r;
	unsigned out = 0;
	char name[16] = "";

	round_init(&r, &policy, 0);
	sscanf(text, "%15s %u %u %u %u %u", name, &out, &r.accepted, &r.committing,
	    &r.next_accepted, &r.next_committing);
	while (r.state < ROUND_ENDED && strcmp(name, state_names[r.state]) != 0)
		r.state++;
	r.invited = out + r.accepted + r.committing + r.next_accepted + r.next_committing;
	r.paused = strstr(text, "paused") != NULL;
	r.opened_ms = T0;
	r.deadline_ms = DEADLINE;
	return r;
}

static void
each_row(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct row *w = &rows[i];
		struct round r = machine(w->before), want = machine(w->after);
		unsigned actions = round_step(&r, w->event, w->arg, w->now);

		if (r.state != want.state || r.paused != want.paused || r.invited != want.invited ||
		    r.accepted != want.accepted || r.committing != want.committing ||
		    r.next_accepted != want.next_accepted ||
		    r.next_committing != want.next_committing)
			fail_msg("%s, %s: %s, invited %u, accepted %u, committing %u, next %u %u",
			    w->before, w->what, state_names[r.state], r.invited, r.accepted,
			    r.committing, r.next_accepted, r.next_committing);
		if (actions != w->actions)
			fail_msg("%s: actions 0x%x", w->what, actions);
	}
}

/* A deadline that finds too little moves on, and forgets nobody. */
static void
deadlines_move(void **state)
{
	struct round r = machine("open 2 1");

	(void)state;
	assert_int_equal(round_next_ms(&r), DEADLINE);
	assert_int_equal(round_step(&r, ROUND_TICK, 0, DEADLINE), 0);
	assert_int_equal(round_next_ms(&r), DEADLINE + 1000);
	assert_int_equal(r.reopened, 0);
	assert_int_equal(round_places(&r), 2);
}

/* Those that find no numbers, while so many tasks are out and so many deltas are there. */
static unsigned
no_numbers(struct round *r, const char *text, uint32_t hostile, unsigned times)
{
	unsigned actions = 0;

	*r = machine(text);
	r->policy.hostile = hostile;
	for (unsigned i = 0; i < times; i++)
		actions |= round_step(r, ROUND_GAVE_UP, 1, MID);
	return actions;
}

/* As many as the quorum end it where nobody else works on it or as many as are asked at a time have said so; at the deadline so many with
 * those that reported. */
static void
a_base_without_numbers(void **state)
{
	struct round r;

	(void)state;
	assert_int_equal(no_numbers(&r, "open 2 1", 0, 2), ROUND_DO_FOLD);
	assert_true(round_close(&r).no_numbers == 2 && round_close(&r).lacks);
	assert_int_equal(no_numbers(&r, "open 3 1", 0, 2), 0);
	assert_int_equal(no_numbers(&r, "open 5 1", 0, 4), ROUND_DO_FOLD);
	assert_int_equal(no_numbers(&r, "open 1 1", 0, 1), 0);
	assert_int_equal(round_step(&r, ROUND_TICK, 0, DEADLINE), ROUND_DO_FOLD);
	assert_int_equal(round_close(&r).no_numbers, 1);
	assert_int_equal(no_numbers(&r, "open 1 1", 1, 1), 0);
	assert_int_equal(round_step(&r, ROUND_TICK, 0, DEADLINE), 0);
	/* With the quorum it is folded. */
	assert_int_equal(no_numbers(&r, "open 2 2", 0, 2), 0);
	assert_int_equal(round_step(&r, ROUND_TICK, 0, DEADLINE), ROUND_DO_FOLD);
	assert_int_equal(round_close(&r).no_numbers, 0);
}

/* A synchronous job whose late deltas go into the next round: what comes while it folds is the next one's, tasks are not. */
static void
late_deltas(void **state)
{
	struct round_policy late = policy;
	struct round r;

	(void)state;
	late.buffered = false;
	late.quorum = 3;
	round_init(&r, &late, 0);
	round_step(&r, ROUND_BEGIN, 0, T0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(round_step(&r, ROUND_ASK, 0, T0), ROUND_DO_INVITE);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(round_step(&r, ROUND_TAKE, 0, T0), ROUND_DO_TAKE);
		round_step(&r, ROUND_ACCEPTED, 0, T0);
	}
	assert_int_equal(r.state, ROUND_FOLDING);
	assert_false(round_refuses(&r));
	assert_int_equal(round_step(&r, ROUND_TAKE, 0, T0), TAKEN_NEXT);
	assert_int_equal(round_step(&r, ROUND_ACCEPTED, 1, T0), 0);
	assert_int_equal(round_step(&r, ROUND_FOLDED, 0, T0), ROUND_DO_BEGIN);
	round_step(&r, ROUND_BEGIN, 0, T0);
	assert_int_equal(r.accepted, 1);
	assert_int_equal(r.invited, 1);
	assert_int_equal(round_places(&r), 3);
	assert_int_equal(round_step(&r, ROUND_EXPIRED, 0, T0), 0);
	assert_int_equal(r.invited, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_row),
	    cmocka_unit_test(deadlines_move),
	    cmocka_unit_test(a_base_without_numbers),
	    cmocka_unit_test(late_deltas),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
