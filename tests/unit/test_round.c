#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "round.h"

/* The policy and the moments of every row: a round opened at T0, in grace since QUORUM_AT. */
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

static const char *const state_names[] = {
    "idle", "gather", "open", "grace", "closing", "folding", "ended"};
static const char *const event_names[] = {"begin", "ask", "drawn", "take", "accepted", "lost",
    "gave_up", "tick", "folded", "not_finite", "pause", "resume", "stop"};
#define STATES (ROUND_ENDED + 1)
#define EVENTS (ROUND_STOP + 1)

/* What a row tells of a machine; the rest follows from the state. */
struct counts {
	enum round_state state;
	uint32_t invited, accepted, committing, aborted;
	bool paused;
};

/* A machine in a row: "STATE [INVITED [ACCEPTED [COMMITTING [ABORTED]]]] [paused]". */
static struct counts
counts_of(const char *text)
{
	struct counts c = {.state = ROUND_IDLE};
	char name[16] = "";

	sscanf(text, "%15s %u %u %u %u", name, &c.invited, &c.accepted, &c.committing, &c.aborted);
	c.paused = strstr(text, "paused") != NULL;
	while (c.state <= ROUND_ENDED && strcmp(name, state_names[c.state]) != 0)
		c.state++;
	assert_in_range(c.state, ROUND_IDLE, ROUND_ENDED);
	return c;
}

struct row {
	const char *what;
	const char *before;
	enum round_event event;
	uint32_t arg;
	uint64_t now;
	const char *after;
	unsigned actions;
};

#define MID (T0 + 300)

static const struct row rows[] = {
    /* idle */
    {"a new round opens", "idle", ROUND_BEGIN, 0, T0, "open", 0},
    {"after a restart it has what it had", "idle", ROUND_BEGIN, 1, T0, "open 1 1", 0},
    {"quorum before the restart", "idle", ROUND_BEGIN, 2, T0, "grace 2 2", 0},
    {"goal before the restart", "idle", ROUND_BEGIN, 3, T0, "folding 3 3", ROUND_DO_FOLD},
    {"a paused job opens and waits", "idle paused", ROUND_BEGIN, 3, T0, "open 3 3 paused", 0},
    {"pause", "idle", ROUND_PAUSE, 0, T0, "idle paused", 0},
    {"resume", "idle paused", ROUND_RESUME, 0, T0, "idle", 0},
    {"stop", "idle", ROUND_STOP, 0, T0, "ended", 0},

    /* gather (the draw itself stands further down: it needs a course of steps) */
    {"the draw opens", "gather", ROUND_DRAWN, 4, MID, "open 4", 0},
    {"a draw on top of reports", "gather 1 1", ROUND_DRAWN, 3, MID, "open 4 1", 0},
    {"a draw of nobody", "gather", ROUND_DRAWN, 0, MID, "open", 0},
    {"asking while gathering gives no task", "gather", ROUND_ASK, 0, MID, "gather", 0},
    {"not while paused", "gather paused", ROUND_ASK, 0, MID, "gather paused", 0},
    {"a late delta", "gather", ROUND_TAKE, 1, MID, "gather 1 0 1", ROUND_DO_TAKE},
    {"is durable", "gather 1 0 1", ROUND_ACCEPTED, 0, MID, "gather 1 1", 0},
    {"makes the quorum", "gather 2 1 1", ROUND_ACCEPTED, 0, MID, "grace 2 2", 0},
    {"is lost", "gather 1 0 1", ROUND_LOST, 0, MID, "gather 1", 0},
    {"its device gives up", "gather 1", ROUND_GAVE_UP, 0, MID, "gather 0 0 0 1", 0},
    {"nobody asked by the deadline", "gather", ROUND_TICK, 0, DEADLINE, "gather", 0},
    {"pause", "gather", ROUND_PAUSE, 0, MID, "gather paused", 0},
    {"resume", "gather paused", ROUND_RESUME, 0, MID, "gather", 0},
    {"stop", "gather", ROUND_STOP, 0, MID, "ended", 0},

    /* open: tasks */
    {"the first asker", "open", ROUND_ASK, 0, MID, "open 1", ROUND_DO_INVITE},
    {"over-selection", "open 3", ROUND_ASK, 0, MID, "open 4", ROUND_DO_INVITE},
    {"no more than that", "open 4", ROUND_ASK, 0, MID, "open 4", 0},
    {"more late ones than places", "open 5 1", ROUND_ASK, 0, MID, "open 5 1", 0},
    {"not while paused", "open paused", ROUND_ASK, 0, MID, "open paused", 0},
    {"giving up frees the place", "open 4", ROUND_GAVE_UP, 0, MID, "open 3 0 0 1", 0},
    {"who reported cannot", "open 1 1", ROUND_GAVE_UP, 0, MID, "open 1 1", 0},
    {"nor who is committing", "open 2 1 1", ROUND_GAVE_UP, 0, MID, "open 2 1 1", 0},
    /* open: deltas */
    {"of an invited device", "open 4", ROUND_TAKE, 0, MID, "open 4 0 1", ROUND_DO_TAKE},
    {"of an earlier opening", "open 4", ROUND_TAKE, 1, MID, "open 5 0 1", ROUND_DO_TAKE},
    {"taken while paused", "open 1 paused", ROUND_TAKE, 0, MID, "open 1 0 1 paused", ROUND_DO_TAKE},
    {"below the quorum", "open 4 0 1", ROUND_ACCEPTED, 0, MID, "open 4 1", 0},
    {"quorum", "open 4 1 1", ROUND_ACCEPTED, 0, MID, "grace 4 2", 0},
    {"goal at once, others on their way", "open 4 2 2", ROUND_ACCEPTED, 0, MID, "closing 4 3 1", 0},
    {"goal while paused", "open 4 2 1 paused", ROUND_ACCEPTED, 0, MID, "open 4 3 0 paused", 0},
    {"nothing was taken", "open 4", ROUND_ACCEPTED, 0, MID, "open 4", 0},
    {"lost", "open 4 0 1", ROUND_LOST, 0, MID, "open 4", 0},
    {"the last one is lost after the deadline", "open 4 1 1", ROUND_LOST, 0, DEADLINE, "open 1 1",
	ROUND_DO_REOPEN},
    {"quorum after the deadline closes at once", "open 4 1 1", ROUND_ACCEPTED, 0, DEADLINE,
	"folding 4 2", ROUND_DO_FOLD},
    /* open: time */
    {"too early", "open 4 1", ROUND_TICK, 0, DEADLINE - 1, "open 4 1", 0},
    {"too few reports", "open 4 1", ROUND_TICK, 0, DEADLINE, "open 1 1", ROUND_DO_REOPEN},
    {"not while one commits", "open 4 1 1", ROUND_TICK, 0, DEADLINE, "open 4 1 1", 0},
    {"not while paused", "open 4 paused", ROUND_TICK, 0, DEADLINE, "open 4 paused", 0},
    {"nobody came", "open", ROUND_TICK, 0, DEADLINE, "open", 0},
    {"nobody came but who reported", "open 1 1", ROUND_TICK, 0, DEADLINE, "open 1 1", 0},
    {"all gave up: they may come again", "open 0 0 0 2", ROUND_TICK, 0, DEADLINE, "open 0 0 0 2",
	ROUND_DO_REOPEN},
    /* open: commands */
    {"pause", "open 4 1", ROUND_PAUSE, 0, MID, "open 4 1 paused", 0},
    {"resume", "open 4 1 paused", ROUND_RESUME, 0, MID, "open 4 1", 0},
    {"resume long after the deadline", "open 4 1 paused", ROUND_RESUME, 0, DEADLINE + 5000,
	"open 4 1", 0},
    {"resume with the quorum", "open 4 2 paused", ROUND_RESUME, 0, MID, "grace 4 2", 0},
    {"resume with the goal", "open 4 3 paused", ROUND_RESUME, 0, MID, "folding 4 3", ROUND_DO_FOLD},
    {"stop", "open 4 1 1", ROUND_STOP, 0, MID, "ended 4 1 1", 0},

    /* grace */
    {"tasks still go out", "grace 3 2", ROUND_ASK, 0, MID, "grace 4 2", ROUND_DO_INVITE},
    {"up to the same number", "grace 4 2", ROUND_ASK, 0, MID, "grace 4 2", 0},
    {"not while paused", "grace 3 2 paused", ROUND_ASK, 0, MID, "grace 3 2 paused", 0},
    {"a delta", "grace 4 2", ROUND_TAKE, 0, MID, "grace 4 2 1", ROUND_DO_TAKE},
    {"goal", "grace 4 2 1", ROUND_ACCEPTED, 0, MID, "folding 4 3", ROUND_DO_FOLD},
    {"goal, another on its way", "grace 4 2 2", ROUND_ACCEPTED, 0, MID, "closing 4 3 1", 0},
    {"lost", "grace 4 2 1", ROUND_LOST, 0, MID, "grace 4 2", 0},
    {"giving up", "grace 4 2", ROUND_GAVE_UP, 0, MID, "grace 3 2 0 1", 0},
    {"too early", "grace 4 2", ROUND_TICK, 0, GRACE_END - 1, "grace 4 2", 0},
    {"grace is over", "grace 4 2", ROUND_TICK, 0, GRACE_END, "folding 4 2", ROUND_DO_FOLD},
    {"over, one on its way", "grace 4 2 1", ROUND_TICK, 0, GRACE_END, "closing 4 2 1", 0},
    {"not while paused", "grace 4 2 paused", ROUND_TICK, 0, GRACE_END, "grace 4 2 paused", 0},
    {"pause", "grace 4 2", ROUND_PAUSE, 0, MID, "grace 4 2 paused", 0},
    {"resume grants the grace anew", "grace 4 2 paused", ROUND_RESUME, 0, GRACE_END + 9000,
	"grace 4 2", 0},
    {"resume with the goal", "grace 4 3 paused", ROUND_RESUME, 0, MID, "folding 4 3",
	ROUND_DO_FOLD},
    {"stop", "grace 4 2", ROUND_STOP, 0, MID, "ended 4 2", 0},

    /* closing: what was taken finishes, nothing else comes */
    {"the last is durable", "closing 4 3 1", ROUND_ACCEPTED, 0, MID, "folding 4 4", ROUND_DO_FOLD},
    {"not the last", "closing 4 2 2", ROUND_ACCEPTED, 0, MID, "closing 4 3 1", 0},
    {"the last is lost", "closing 4 3 1", ROUND_LOST, 0, MID, "folding 4 3", ROUND_DO_FOLD},
    {"a pause does not hold it", "closing 4 3 1 paused", ROUND_ACCEPTED, 0, MID,
	"folding 4 4 paused", ROUND_DO_FOLD},
    {"pause", "closing 4 3 1", ROUND_PAUSE, 0, MID, "closing 4 3 1 paused", 0},
    {"resume", "closing 4 3 1 paused", ROUND_RESUME, 0, MID, "closing 4 3 1", 0},
    {"stop", "closing 4 3 1", ROUND_STOP, 0, MID, "ended 4 3 1", 0},

    /* folding */
    {"committed", "folding 4 3", ROUND_FOLDED, 0, MID, "folding 4 3", ROUND_DO_BEGIN},
    {"committed as failed", "folding 4 3", ROUND_NOT_FINITE, 0, MID, "folding 4 3", ROUND_DO_BEGIN},
    {"the next round", "folding 4 3 0 1", ROUND_BEGIN, 0, MID, "open", 0},
    {"again after the fold itself failed", "folding 4 3 paused", ROUND_BEGIN, 3, MID,
	"open 3 3 paused", 0},
    {"pause", "folding 4 3", ROUND_PAUSE, 0, MID, "folding 4 3 paused", 0},
    {"resume", "folding 4 3 paused", ROUND_RESUME, 0, MID, "folding 4 3", 0},
    {"stop", "folding 4 3", ROUND_STOP, 0, MID, "ended 4 3", 0},
};

/* Events that a state ignores, whatever its counts. */
#define E(name) (1u << ROUND_##name)
static const unsigned ignored[STATES] = {
    [ROUND_IDLE] = E(ASK) | E(DRAWN) | E(TAKE) | E(ACCEPTED) | E(LOST) | E(GAVE_UP) | E(TICK) |
	E(FOLDED) | E(NOT_FINITE),
    [ROUND_GATHER] = E(BEGIN) | E(FOLDED) | E(NOT_FINITE),
    [ROUND_OPEN] = E(BEGIN) | E(DRAWN) | E(FOLDED) | E(NOT_FINITE),
    [ROUND_GRACE] = E(BEGIN) | E(DRAWN) | E(FOLDED) | E(NOT_FINITE),
    [ROUND_CLOSING] =
	E(BEGIN) | E(ASK) | E(DRAWN) | E(TAKE) | E(GAVE_UP) | E(TICK) | E(FOLDED) | E(NOT_FINITE),
    [ROUND_FOLDING] = E(ASK) | E(DRAWN) | E(TAKE) | E(ACCEPTED) | E(LOST) | E(GAVE_UP) | E(TICK),
    [ROUND_ENDED] = (1u << EVENTS) - 1,
};

static struct round
machine(const struct round_policy *p, const struct counts *c)
{
	struct round r;

	round_init(&r, p);
	assert_int_equal(r.state, ROUND_IDLE);
	r.state = c->state;
	r.paused = c->paused;
	r.invited = c->invited;
	r.accepted = c->accepted;
	r.committing = c->committing;
	r.aborted = c->aborted;
	r.opened_ms = T0;
	r.deadline_ms = DEADLINE;
	r.grace_until_ms = c->state == ROUND_GRACE ? GRACE_END : 0;
	return r;
}

static void
check_counts(const char *what, const struct round *r, const struct counts *want)
{
	if (r->state != want->state || r->paused != want->paused || r->invited != want->invited ||
	    r->accepted != want->accepted || r->committing != want->committing ||
	    r->aborted != want->aborted)
		fail_msg("%s: %s%s, invited %u, accepted %u, committing %u, aborted %u", what,
		    state_names[r->state], r->paused ? " paused" : "", r->invited, r->accepted,
		    r->committing, r->aborted);
}

static void
each_row(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct row *w = &rows[i];
		struct counts before = counts_of(w->before), after = counts_of(w->after);
		struct round r = machine(&policy, &before);
		char what[128];

		snprintf(
		    what, sizeof(what), "%s, %s: %s", w->before, event_names[w->event], w->what);
		/* A machine that gathers has the policy for it. */
		r.policy.sample = before.state == ROUND_GATHER;
		unsigned actions = round_step(&r, w->event, w->arg, w->now);
		check_counts(what, &r, &after);
		if (actions != w->actions)
			fail_msg("%s: actions 0x%x", what, actions);
	}
}

static void
ignored_events_change_nothing(void **state)
{
	(void)state;
	for (int s = 0; s < STATES; s++)
		for (int e = 0; e < EVENTS; e++) {
			struct counts c = {
			    .state = (enum round_state)s, .invited = 5, .accepted = 1};
			struct round r = machine(&policy, &c), before = r;
			if (!(ignored[s] & 1u << e))
				continue;
			if (round_step(&r, (enum round_event)e, 2, DEADLINE + 1) != 0 ||
			    memcmp(&r, &before, sizeof(r)) != 0)
				fail_msg("%s does not ignore %s", state_names[s], event_names[e]);
		}
}

/* No pair of state and event is left out of the tables above. */
static void
the_tables_are_complete(void **state)
{
	unsigned seen[STATES];

	(void)state;
	memcpy(seen, ignored, sizeof(seen));
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		enum round_state from = counts_of(rows[i].before).state;
		if (ignored[from] & 1u << rows[i].event)
			fail_msg("%s is in both tables", rows[i].what);
		seen[from] |= 1u << rows[i].event;
	}
	for (int s = 0; s < STATES; s++)
		for (int e = 0; e < EVENTS; e++)
			if (!(seen[s] & 1u << e))
				fail_msg("%s has no row for %s", state_names[s], event_names[e]);
}

/* --- courses of several steps */

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

	round_init(&r, p);
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
	round_init(&r, &policy);
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

static void
names_of_states(void **state)
{
	(void)state;
	for (int s = 0; s < STATES; s++) {
		struct counts c = {.state = (enum round_state)s};
		struct round r = machine(&policy, &c);
		bool open = s == ROUND_GATHER || s == ROUND_OPEN || s == ROUND_GRACE;
		assert_string_equal(round_state_name(&r), state_names[s]);
		r.paused = true;
		assert_string_equal(round_state_name(&r), open ? "paused" : state_names[s]);
		assert_int_equal(round_next_ms(&r), UINT64_MAX);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_row),
	    cmocka_unit_test(ignored_events_change_nothing),
	    cmocka_unit_test(the_tables_are_complete),
	    cmocka_unit_test(a_round_by_the_goal),
	    cmocka_unit_test(closing_waits_for_the_disk),
	    cmocka_unit_test(the_deadline_ends_the_grace),
	    cmocka_unit_test(abandoned_and_opened_again),
	    cmocka_unit_test(late_deltas_do_not_answer_for_others),
	    cmocka_unit_test(nobody_came),
	    cmocka_unit_test(given_up_and_delivered),
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
	    cmocka_unit_test(names_of_states),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
