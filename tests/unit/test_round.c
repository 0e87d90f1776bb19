/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "job.h"
#include "round.h"

/* The policy and the moments of every row: a round opened at T0, in grace since QUORUM_AT. */
#define T0 10000
#define DEADLINE (T0 + 1000)
#define QUORUM_AT (T0 + 500)
#define GRACE_END (QUORUM_AT + 100)
static const struct round_policy policy = {.goal = 3,
    .quorum = 2,
    .invite_max = 4,
    .deadline_ms = 1000,
    .grace_ms = 100,
    .sample_ms = 50,
    .failures = 3};
static const char *const state_names[] = {
    "idle", "gather", "open", "grace", "closing", "folding", "ended"};
static const char *const event_names[] = {"begin", "ask", "drawn", "take", "accepted", "lost",
    "expired", "early", "out", "gave_up", "tick", "folded", "not_finite", "pause", "resume",
    "stop"};
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

    /* gather (the draw itself needs a course of steps: test_round_turns.c) */
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
    {"its base gives no numbers", "open 4", ROUND_GAVE_UP, 1, MID, "open 3 0 0 1", 0},
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
/* What concerns buffers and late deltas alone; test_round_buffered. */
#define OTHERS (E(EXPIRED) | E(EARLY) | E(OUT))
static const unsigned ignored[STATES] = {
    [ROUND_IDLE] = OTHERS | E(ASK) | E(DRAWN) | E(TAKE) | E(ACCEPTED) | E(LOST) | E(GAVE_UP) |
	E(TICK) | E(FOLDED) | E(NOT_FINITE),
    [ROUND_GATHER] = OTHERS | E(BEGIN) | E(FOLDED) | E(NOT_FINITE),
    [ROUND_OPEN] = OTHERS | E(BEGIN) | E(DRAWN) | E(FOLDED) | E(NOT_FINITE),
    [ROUND_GRACE] = OTHERS | E(BEGIN) | E(DRAWN) | E(FOLDED) | E(NOT_FINITE),
    [ROUND_CLOSING] = OTHERS | E(BEGIN) | E(ASK) | E(DRAWN) | E(TAKE) | E(GAVE_UP) | E(TICK) |
	E(FOLDED) | E(NOT_FINITE),
    [ROUND_FOLDING] =
	OTHERS | E(ASK) | E(DRAWN) | E(TAKE) | E(ACCEPTED) | E(LOST) | E(GAVE_UP) | E(TICK),
    [ROUND_ENDED] = (1u << EVENTS) - 1,
};

static struct round
machine(const struct round_policy *p, const struct counts *c)
{
	struct round r;

	round_init(&r, p, 0);
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

/* An evaluation: the deadline closes it, whatever it has. Else it is as any round. */
static void
what_is_done_once(void **state)
{
	static const struct row once[] = {
	    {"nobody came", "open", ROUND_TICK, 0, DEADLINE, "folding", ROUND_DO_FOLD},
	    {"nobody came for the draw", "gather", ROUND_TICK, 0, DEADLINE, "folding",
		ROUND_DO_FOLD},
	    {"less than the quorum", "open 3 1", ROUND_TICK, 0, DEADLINE, "folding 3 1",
		ROUND_DO_FOLD},
	    {"all gave up", "open 0 0 0 4", ROUND_TICK, 0, DEADLINE, "folding 0 0 0 4",
		ROUND_DO_FOLD},
	    {"one is on its way", "open 3 1 1", ROUND_TICK, 0, DEADLINE, "open 3 1 1", 0},
	    {"and is there", "open 3 0 1", ROUND_ACCEPTED, 0, DEADLINE, "folding 3 1",
		ROUND_DO_FOLD},
	    {"and is lost", "open 3 0 1", ROUND_LOST, 0, DEADLINE, "folding 3", ROUND_DO_FOLD},
	    {"not yet", "open 3 1", ROUND_TICK, 0, DEADLINE - 1, "open 3 1", 0},
	    {"paused", "open 3 1 paused", ROUND_TICK, 0, DEADLINE, "open 3 1 paused", 0},
	    {"resumed", "open 3 1 paused", ROUND_RESUME, 0, DEADLINE, "open 3 1", 0},
	    {"the quorum", "open 3 1 1", ROUND_ACCEPTED, 0, T0, "grace 3 2", 0},
	    {"grace is over", "grace 3 2", ROUND_TICK, 0, GRACE_END, "folding 3 2", ROUND_DO_FOLD},
	    {"the goal", "grace 3 2 1", ROUND_ACCEPTED, 0, T0, "folding 3 3", ROUND_DO_FOLD},
	    {"stopped", "open 3 1", ROUND_STOP, 0, T0, "ended 3 1", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(once) / sizeof(*once); i++) {
		const struct row *w = &once[i];
		struct counts before = counts_of(w->before), after = counts_of(w->after);
		struct round r = machine(&policy, &before);

		r.policy.once = true;
		r.policy.sample = before.state == ROUND_GATHER;
		unsigned actions = round_step(&r, w->event, w->arg, w->now);
		check_counts(w->what, &r, &after);
		if (actions != w->actions)
			fail_msg("%s: actions 0x%x", w->what, actions);
		if (actions & ROUND_DO_FOLD)
			assert_int_equal(round_close(&r).lacks, r.accepted < policy.quorum);
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

/* --- what others ask of it */

/* Whoever ticks at the next time and never before misses nothing, and does not tick in vain. */
static void
nothing_is_due_before_the_next_time(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct counts c = counts_of(rows[i].before);
		struct round r = machine(&policy, &c);
		r.policy.sample = c.state == ROUND_GATHER;
		round_step(&r, ROUND_ASK, 0, T0);
		round_step(&r, ROUND_TICK, 0, T0);
		uint64_t next = round_next_ms(&r);
		struct round before = r;
		if (round_step(&r, ROUND_TICK, 0, next - 1) != 0 ||
		    memcmp(&r, &before, sizeof(r)) != 0)
			fail_msg("%s: ticks before its time", rows[i].before);
		bool moves =
		    round_step(&r, ROUND_TICK, 0, next) != 0 || memcmp(&r, &before, sizeof(r)) != 0;
		if (next != UINT64_MAX && r.committing == 0 && !moves)
			fail_msg("%s: ticks in vain", rows[i].before);
	}
}

static void
what_a_closed_round_comes_to(void **state)
{
	const struct counts full = counts_of("folding 4 2 0 1"), few = counts_of("folding 2 1 0 3");
	struct round r = machine(&policy, &full);

	(void)state;
	r.reopened = 5;
	r.no_numbers = 1;
	struct round_close close = round_close(&r);
	assert_int_equal(close.invited, 4);
	assert_int_equal(close.aborted, 1);
	assert_int_equal(close.reopened, 5);
	/* Enough others could work with the base. */
	assert_int_equal(close.no_numbers, 0);
	r = machine(&policy, &few);
	r.no_numbers = 2;
	assert_int_equal(round_close(&r).no_numbers, 2);
}

/* In which states are there places, is a delta wanted, is it too late for one? */
static void
tasks_and_deltas(void **state)
{
	static const struct {
		const char *machine;
		uint32_t places;
		bool wants, closed;
	} cases[] = {
	    {"idle", 4, false, false},
	    {"gather 1 1", 3, true, false},
	    {"open 4", 0, true, false},
	    {"open 6 2", 0, true, false},
	    {"open 4 1 1", 0, true, false},
	    {"open 4 1 2", 0, false, false},
	    {"grace 3 2", 1, true, false},
	    {"closing 4 3 1", 0, false, true},
	    {"folding 4 3", 0, false, true},
	    {"ended 4 3", 0, false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct counts c = counts_of(cases[i].machine);
		struct round r = machine(&policy, &c);
		if (round_places(&r) != cases[i].places || round_wants(&r) != cases[i].wants ||
		    round_has_closed(&r) != cases[i].closed)
			fail_msg("%s: places %u, wants %d, closed %d", cases[i].machine,
			    round_places(&r), round_wants(&r), round_has_closed(&r));
	}
}

static void
policy_of_a_document(void **state)
{
	struct job_spec spec = {.round = {.goal = 10,
				    .quorum = 7,
				    .over_select = 1.25,
				    .deadline_s = 60,
				    .grace_s = 0.5,
				    .sample_s = 2,
				    .sample = true},
	    .aggregate = {.rule = {.hostile = 3}}};
	struct round_policy p = round_policy(&spec);

	(void)state;
	assert_int_equal(p.goal, 10);
	assert_int_equal(p.quorum, 7);
	assert_int_equal(p.hostile, 3);
	/* 12.5 devices are 13. */
	assert_int_equal(p.invite_max, 13);
	assert_int_equal(p.deadline_ms, 60000);
	assert_int_equal(p.grace_ms, 500);
	assert_int_equal(p.sample_ms, 2000);
	assert_true(p.sample);
	assert_int_equal(p.failures, 3);
	assert_false(p.once);
	p = round_evaluation(&spec);
	assert_true(p.once && p.sample && p.goal == 10 && p.quorum == 7 && p.grace_ms == 500);
	assert_int_equal(p.deadline_ms, 60000);
	spec.recipe.evaluate_deadline_s = 2.5;
	assert_int_equal(round_evaluation(&spec).deadline_ms, 2500);
	assert_int_equal(round_policy(&spec).deadline_ms, 60000);
	spec.round.over_select = 1e12;
	assert_int_equal(round_policy(&spec).invite_max, UINT32_MAX);
}

static void
failures_before_a_restart(void **state)
{
	struct round r;

	(void)state;
	round_init(&r, &policy, 2);
	round_step(&r, ROUND_BEGIN, 3, T0);
	assert_int_equal(round_step(&r, ROUND_NOT_FINITE, 0, T0), ROUND_DO_BEGIN | ROUND_DO_PAUSE);
	/* The third paused the job: the count began anew. */
	round_init(&r, &policy, 3);
	round_step(&r, ROUND_BEGIN, 3, T0);
	assert_int_equal(round_step(&r, ROUND_NOT_FINITE, 0, T0), ROUND_DO_BEGIN);
}

/* A clock may begin at 0, and a gathering may last no time. */
static void
gathers_at_nought(void **state)
{
	struct round_policy at_once = policy;
	struct round r;

	(void)state;
	at_once.sample = true;
	at_once.sample_ms = 0;
	round_init(&r, &at_once, 0);
	round_step(&r, ROUND_BEGIN, 0, 0);
	assert_int_equal(r.state, ROUND_GATHER);
	assert_int_equal(round_step(&r, ROUND_ASK, 0, 0), 0);
	assert_in_range(round_next_ms(&r), 0, 1);
	assert_int_equal(round_step(&r, ROUND_TICK, 0, round_next_ms(&r)), ROUND_DO_DRAW);
}

/* Another deadline and grace, while a round is open and while it waits for the rest. */
static void
another_policy(void **state)
{
	struct round_policy longer = policy;
	struct round r;

	(void)state;
	longer.deadline_ms += 5000;
	longer.grace_ms += 300;
	round_init(&r, &policy, 0);
	round_amend(&r, &policy);
	round_step(&r, ROUND_BEGIN, 0, T0);
	const uint64_t before = r.deadline_ms;
	round_amend(&r, &longer);
	assert_int_equal(r.deadline_ms, before + 5000);
	assert_int_equal(round_next_ms(&r), r.deadline_ms);
	round_amend(&r, &policy);
	assert_int_equal(r.deadline_ms, before);
	r.state = ROUND_GRACE;
	r.grace_until_ms = T0 + 7;
	round_amend(&r, &longer);
	assert_int_equal(r.grace_until_ms, T0 + 307);
	/* Fewer reports will do, and more are wanted again. */
	struct round_policy fewer = policy;
	round_init(&r, &policy, 0);
	round_step(&r, ROUND_BEGIN, 1, T0);
	assert_int_equal(r.state, ROUND_OPEN);
	fewer.quorum = 1;
	round_amend(&r, &fewer);
	round_step(&r, ROUND_TICK, 0, T0);
	assert_int_equal(r.state, ROUND_GRACE);
	round_amend(&r, &policy);
	assert_int_equal(r.state, ROUND_OPEN);
	fewer.goal = 1;
	round_amend(&r, &fewer);
	assert_int_equal(round_step(&r, ROUND_TICK, 0, T0), ROUND_DO_FOLD);
	/* So much sooner that it is over. */
	longer.deadline_ms = 1;
	r.deadline_ms = 10;
	round_amend(&r, &longer);
	assert_int_equal(r.deadline_ms, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_row),
	    cmocka_unit_test(ignored_events_change_nothing),
	    cmocka_unit_test(what_is_done_once),
	    cmocka_unit_test(the_tables_are_complete),
	    cmocka_unit_test(names_of_states),
	    cmocka_unit_test(nothing_is_due_before_the_next_time),
	    cmocka_unit_test(what_a_closed_round_comes_to),
	    cmocka_unit_test(tasks_and_deltas),
	    cmocka_unit_test(policy_of_a_document),
	    cmocka_unit_test(failures_before_a_restart),
	    cmocka_unit_test(gathers_at_nought),
	    cmocka_unit_test(another_policy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
