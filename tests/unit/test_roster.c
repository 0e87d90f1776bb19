/* stages: gcc clang address */
/* The machine of one place, row by row of round/roster/README.md, and many places of one round under random events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "judge.h"
#include "late.h"
#include "prng.h"
#include "roster.h"
#include "round.h"

#define NOW 10000000
#define TIMEOUT 1000
#define ROUND 5
static const char *const state_names[] = {
    "none", "out", "committing", "accepted", "aborted", "stopped", "expired"};
/* Jobs: plain, of late "next", buffered, buffered with a rule that bears hostile devices, an evaluation. */
enum job { PLAIN, LATE, BUFFERED, HOSTILE, EVALUATION };

struct scene {
	struct round machine;
	struct late_point points[4];
	struct roster_round round;
};

static void
set(struct scene *s, enum job job, enum round_state state)
{
	const bool buffered = job == BUFFERED || job == HOSTILE, late = buffered || job == LATE;

	*s = (struct scene){.machine = {.policy = {.goal = 3,
					    .quorum = 2,
					    .hostile = job == HOSTILE,
					    .invite_max = 4,
					    .deadline_ms = 1000,
					    .late = late,
					    .buffered = buffered,
					    .once = job == EVALUATION},
				.state = state}};
	for (uint8_t i = 0; i < 4; i++) {
		s->points[i] = (struct late_point){.round = ROUND - i, .live = true};
		memset(s->points[i].base, ROUND - i, 32);
	}
	s->round = (struct roster_round){.machine = &s->machine,
	    .number = ROUND,
	    .timeout_ms = TIMEOUT,
	    .per_device = job == LATE ? 2 : 1,
	    .max_staleness = buffered ? 2 : late,
	    .lives = true,
	    .evaluates = job == EVALUATION,
	    .points = late ? s->points : NULL,
	    .point_count = buffered ? 3
		: late		    ? 2
				    : 0};
}

/* "STATE [TASK [NOW [NEXT]]]", the round being 5. */
static struct roster_place
place_of(const char *text)
{
	struct roster_place p = {.state = ROSTER_NONE, .until_ms = NOW + 1};
	unsigned task = 0;
	char name[16] = "";

	sscanf(text, "%15s %u %u %u", name, &task, &p.now, &p.next);
	p.round = task;
	while (p.state <= ROSTER_EXPIRED && strcmp(name, state_names[p.state]) != 0)
		p.state++;
	assert_in_range(p.state, ROSTER_NONE, ROSTER_EXPIRED);
	return p;
}

static const char *
text_of(const struct roster_place *p)
{
	static char text[64];

	snprintf(text, sizeof(text), "%s %u %u %u", state_names[p->state], (unsigned)p->round,
	    p->now, p->next);
	return text;
}

struct row {
	enum job job;
	enum round_state state;
	const char *before;
	struct roster_event e;
	const char *after;
	unsigned actions;
};

#define HAND ROSTER_DO_HAND
#define RENAME (ROSTER_DO_HAND | ROSTER_DO_RENAME)
#define ENTER ROSTER_DO_ENTER
#define REPORTED ROSTER_DO_REPORTED
#define TAKE ROSTER_DO_TAKE
#define FRESH (ROSTER_DO_TAKE | ROSTER_DO_FRESH)
#define RENAMED (FRESH | ROSTER_DO_RENAME)
#define NEXT ROSTER_DO_NEXT
#define SETTLE ROSTER_DO_SETTLE
#define FREE ROSTER_DO_FREE
#define END ROSTER_DO_END
#define FORGET ROSTER_DO_FORGET
#define OPEN ROUND_OPEN
#define EVENT(...) \
	{ \
		.kind = __VA_ARGS__ \
	}

static const struct row rows[] = {
#define ASKS EVENT(ROSTER_ASK)
#define UNSENT EVENT(ROSTER_ASK, .unsent = true)
    {PLAIN, OPEN, "none", ASKS, "none 0 0 0", ENTER},
    {PLAIN, OPEN, "out 5", ASKS, "out 5 0 0", HAND},
    {PLAIN, OPEN, "out 5", UNSENT, "out 5 0 0", HAND},
    {PLAIN, OPEN, "accepted 5 1", ASKS, "accepted 5 1 0", REPORTED},
    {PLAIN, OPEN, "aborted 5", ASKS, "aborted 5 0 0", ROSTER_DO_ABORTED},
    {PLAIN, OPEN, "stopped 5", ASKS, "stopped 5 0 0", ENTER},
    {PLAIN, ROUND_GATHER, "none", ASKS, "none 0 0 0", ENTER},
    {PLAIN, ROUND_GRACE, "none", ASKS, "none 0 0 0", ENTER},
    {PLAIN, ROUND_CLOSING, "none", ASKS, "none 0 0 0", ROSTER_DO_WAIT},
    {PLAIN, ROUND_FOLDING, "out 5", ASKS, "out 5 0 0", ROSTER_DO_WAIT},
    {PLAIN, ROUND_CLOSING, "accepted 5 1", ASKS, "accepted 5 1 0", REPORTED},
    {PLAIN, ROUND_CLOSING, "aborted 5", ASKS, "aborted 5 0 0", ROSTER_DO_ABORTED},
    {PLAIN, ROUND_CLOSING, "stopped 5", ASKS, "stopped 5 0 0", ROSTER_DO_WAIT},
    {EVALUATION, OPEN, "none", ASKS, "none 0 0 0", ENTER},
    {EVALUATION, OPEN, "accepted 5", ASKS, "accepted 5 0 0", REPORTED},
    /* A late delta in the open round is one of two that it may have of the device. */
    {LATE, OPEN, "none 0 1", ASKS, "none 0 1 0", ENTER},
    {LATE, OPEN, "none 0 2", ASKS, "none 0 2 0", ENTER},
    {LATE, OPEN, "accepted 5 1", ASKS, "accepted 5 1 0", REPORTED},
    {BUFFERED, OPEN, "none", ASKS, "none 0 0 0", ENTER},
    {BUFFERED, OPEN, "none 0 1", ASKS, "none 0 1 0", REPORTED},
    {BUFFERED, OPEN, "out 5", ASKS, "out 5 0 0", HAND},
    {BUFFERED, OPEN, "out 4", ASKS, "out 5 0 0", RENAME},
    {BUFFERED, OPEN, "out 4", UNSENT, "out 4 0 0", ROSTER_DO_UNSENT},
    {BUFFERED, OPEN, "out 4 1", UNSENT, "out 4 1 0", REPORTED},
    {BUFFERED, OPEN, "out 4 1", ASKS, "out 4 1 0", REPORTED},
    {BUFFERED, ROUND_CLOSING, "out 4", ASKS, "out 4 0 0", ROSTER_DO_WAIT},
    {BUFFERED, ROUND_CLOSING, "out 4", UNSENT, "out 4 0 0", ROSTER_DO_UNSENT},
    {BUFFERED, OPEN, "committing 5 1", ASKS, "committing 5 1 0", REPORTED},
    {BUFFERED, OPEN, "committing 4 0 1", ASKS, "committing 4 0 1", REPORTED},
    {BUFFERED, OPEN, "accepted 4", ASKS, "accepted 4 0 0", ENTER},
    {BUFFERED, OPEN, "accepted 4 1", ASKS, "accepted 4 1 0", REPORTED},
    {BUFFERED, OPEN, "aborted 4", ASKS, "aborted 4 0 0", ENTER},
    {BUFFERED, OPEN, "aborted 5", ASKS, "aborted 5 0 0", ROSTER_DO_ABORTED},
    {BUFFERED, OPEN, "stopped 5", ASKS, "stopped 5 0 0", ENTER},
    {BUFFERED, OPEN, "stopped 4", ASKS, "stopped 4 0 0", ENTER},
    {BUFFERED, OPEN, "stopped 4", UNSENT, "stopped 4 0 0", ENTER},
    {BUFFERED, OPEN, "expired 5", ASKS, "expired 5 0 0", ENTER},
    {BUFFERED, OPEN, "expired 5", UNSENT, "expired 5 0 0", ENTER},
    {BUFFERED, OPEN, "expired 4", ASKS, "expired 4 0 0", ENTER},
    {BUFFERED, OPEN, "expired 4", UNSENT, "expired 4 0 0", ROSTER_DO_UNSENT},

#define GIVES EVENT(ROSTER_GIVE)
    {PLAIN, OPEN, "none", GIVES, "out 5 0 0", RENAME},
    {PLAIN, OPEN, "stopped 5", GIVES, "out 5 0 0", HAND},
    {BUFFERED, OPEN, "expired 5", GIVES, "out 5 0 0", HAND},
    {BUFFERED, OPEN, "expired 4", GIVES, "out 5 0 0", RENAME},
    {BUFFERED, OPEN, "accepted 4", GIVES, "out 5 0 0", RENAME},
    {BUFFERED, OPEN, "aborted 4", GIVES, "out 5 0 0", RENAME},
    {LATE, OPEN, "none 0 1", GIVES, "out 5 1 0", RENAME},

#define TAKES(n) EVENT(ROSTER_TAKE, .round = (n))
    {PLAIN, OPEN, "out 5", TAKES(5), "out 5 1 0", TAKE},
    {PLAIN, ROUND_GRACE, "out 5", TAKES(5), "out 5 1 0", TAKE},
    {PLAIN, ROUND_CLOSING, "out 5", TAKES(5), "out 5 0 0", 0},
    {PLAIN, ROUND_IDLE, "out 5", TAKES(5), "out 5 0 0", 0},
    {PLAIN, ROUND_ENDED, "out 5", TAKES(5), "out 5 0 0", 0},
    {PLAIN, OPEN, "out 5", TAKES(4), "out 5 0 0", 0},
    {PLAIN, OPEN, "out 5", TAKES(6), "out 5 0 0", 0},
    {PLAIN, OPEN, "accepted 5 1", TAKES(5), "accepted 5 1 0", 0},
    {PLAIN, OPEN, "none", TAKES(5), "out 5 1 0", RENAMED},
    {PLAIN, OPEN, "aborted 5", TAKES(5), "out 5 1 0", FRESH},
    {PLAIN, OPEN, "stopped 5", TAKES(5), "out 5 1 0", FRESH},
    {EVALUATION, OPEN, "out 5", TAKES(5), "out 5 1 0", TAKE},
    {EVALUATION, OPEN, "out 5", TAKES(4), "out 5 0 0", 0},
    {LATE, OPEN, "none", TAKES(4), "none 0 1 0", FRESH},
    {LATE, OPEN, "out 5", TAKES(4), "out 5 1 0", FRESH},
    {LATE, OPEN, "accepted 5 1", TAKES(4), "accepted 5 2 0", FRESH},
    {LATE, OPEN, "out 5", TAKES(3), "out 5 0 0", 0},
    {LATE, OPEN, "out 5 1", TAKES(5), "out 5 2 0", TAKE},
    {LATE, OPEN, "out 5 2", TAKES(5), "out 5 2 1", TAKE | NEXT},
    {LATE, OPEN, "out 5 2 2", TAKES(5), "out 5 2 2", ROSTER_DO_LATER},
    {LATE, OPEN, "out 5 2", TAKES(4), "out 5 2 0", 0},
    {LATE, ROUND_CLOSING, "out 5", TAKES(5), "out 5 0 1", TAKE | NEXT},
    {LATE, ROUND_FOLDING, "out 5", TAKES(5), "out 5 0 1", TAKE | NEXT},
    {LATE, ROUND_CLOSING, "out 5 0 2", TAKES(5), "out 5 0 2", ROSTER_DO_LATER},
    {LATE, ROUND_CLOSING, "none", TAKES(4), "none 0 0 0", 0},
    {BUFFERED, OPEN, "out 5", TAKES(5), "committing 5 1 0", TAKE},
    {BUFFERED, OPEN, "out 4", TAKES(4), "committing 4 1 0", TAKE},
    {BUFFERED, OPEN, "out 5", TAKES(4), "out 5 1 0", FRESH},
    {BUFFERED, OPEN, "out 4", TAKES(5), "out 5 1 0", RENAMED},
    {BUFFERED, OPEN, "committing 4", TAKES(4), "committing 4 0 0", 0},
    {BUFFERED, OPEN, "committing 5", TAKES(4), "committing 5 1 0", FRESH},
    {BUFFERED, OPEN, "committing 4", TAKES(5), "out 5 1 0", RENAMED},
    {BUFFERED, OPEN, "accepted 4", TAKES(4), "accepted 4 0 0", 0},
    {BUFFERED, OPEN, "accepted 4", TAKES(5), "committing 5 1 0", RENAMED},
    {BUFFERED, OPEN, "aborted 5", TAKES(5), "committing 5 1 0", FRESH},
    {BUFFERED, OPEN, "stopped 4", TAKES(4), "committing 4 1 0", FRESH},
    {BUFFERED, OPEN, "expired 4", TAKES(4), "committing 4 1 0", FRESH},
    {BUFFERED, OPEN, "none", TAKES(3), "committing 3 1 0", RENAMED},
    {BUFFERED, OPEN, "none", TAKES(2), "none 0 0 0", 0},
    {BUFFERED, ROUND_FOLDING, "out 4", TAKES(4), "committing 4 0 1", TAKE | NEXT},
    {BUFFERED, ROUND_FOLDING, "none", TAKES(3), "none 0 0 0", 0},
    {BUFFERED, OPEN, "out 5 1", TAKES(5), "committing 5 1 1", TAKE | NEXT},
    {BUFFERED, OPEN, "out 5 1 1", TAKES(5), "out 5 1 1", ROSTER_DO_LATER},
    {BUFFERED, OPEN, "out 3 1", TAKES(3), "out 3 1 0", 0},

#define SETTLES(n, into) EVENT(ROSTER_SETTLED, .round = (n), .folded = (into))
    {PLAIN, OPEN, "out 5 1", SETTLES(5, 5), "accepted 5 1 0", SETTLE | END},
    {LATE, OPEN, "out 5 1", SETTLES(4, 5), "out 5 1 0", SETTLE},
    {LATE, ROUND_FOLDING, "out 5 0 1", SETTLES(5, 6), "accepted 5 0 1", SETTLE | NEXT | END},
    {LATE, OPEN, "none", SETTLES(4, 5), "none 0 0 0", SETTLE},
    {BUFFERED, OPEN, "committing 4 1", SETTLES(4, 5), "accepted 4 1 0", SETTLE | END},
    {BUFFERED, OPEN, "out 5 1", SETTLES(4, 5), "out 5 1 0", SETTLE},
    {BUFFERED, OPEN, "out 5 1 1", SETTLES(4, 6), "out 5 1 1", SETTLE | NEXT},
    {BUFFERED, OPEN, "committing 5 1", SETTLES(4, 5), "committing 5 1 0", SETTLE},

#define LOSES(n, into, anew) EVENT(ROSTER_LOST, .round = (n), .folded = (into), .fresh = (anew))
    {PLAIN, OPEN, "out 5 1", LOSES(5, 5, false), "out 5 0 0", SETTLE},
    {PLAIN, OPEN, "out 5 1", LOSES(5, 5, true), "out 5 0 0", SETTLE | FREE},
    {LATE, OPEN, "out 5 1 1", LOSES(4, 5, true), "out 5 0 1", SETTLE | FREE},
    {LATE, ROUND_FOLDING, "out 5 1 1", LOSES(5, 6, false), "out 5 1 0", SETTLE | NEXT},
    {LATE, OPEN, "none", LOSES(4, 5, true), "none 0 0 0", SETTLE | FREE},
    {BUFFERED, OPEN, "committing 4 1", LOSES(4, 5, false), "out 4 0 0", SETTLE},
    {BUFFERED, OPEN, "committing 4 1", LOSES(4, 5, true), "expired 4 0 0", SETTLE | FREE},
    {BUFFERED, OPEN, "committing 5 1 1", LOSES(4, 6, true), "committing 5 1 0",
	SETTLE | NEXT | FREE},
    {BUFFERED, OPEN, "out 5 1", LOSES(4, 5, true), "out 5 0 0", SETTLE | FREE},

#define GIVES_UP EVENT(ROSTER_GIVE_UP)
#define STOPS EVENT(ROSTER_GIVE_UP, .passes = true)
    {PLAIN, OPEN, "out 5", GIVES_UP, "aborted 5 0 0", END | ROSTER_DO_GAVE_UP},
    {PLAIN, OPEN, "out 5", STOPS, "stopped 5 0 0", END | ROSTER_DO_GAVE_UP},
    {PLAIN, ROUND_FOLDING, "out 5", GIVES_UP, "aborted 5 0 0", END | ROSTER_DO_GAVE_UP},
    {PLAIN, OPEN, "none", GIVES_UP, "none 0 0 0", 0},
    {PLAIN, OPEN, "accepted 5 1", GIVES_UP, "accepted 5 1 0", 0},
    {PLAIN, OPEN, "aborted 5", GIVES_UP, "aborted 5 0 0", 0},
    {PLAIN, OPEN, "stopped 5", GIVES_UP, "stopped 5 0 0", 0},
    {BUFFERED, OPEN, "out 4", GIVES_UP, "aborted 4 0 0", END | ROSTER_DO_GAVE_UP},
    {BUFFERED, OPEN, "committing 4 1", GIVES_UP, "committing 4 1 0", 0},
    {BUFFERED, OPEN, "expired 4", GIVES_UP, "aborted 4 0 0", END},
    {BUFFERED, OPEN, "expired 4", STOPS, "stopped 4 0 0", END},

#define EXPIRES EVENT(ROSTER_EXPIRE)
    {PLAIN, OPEN, "out 5", EXPIRES, "out 5 0 0", 0},
    {BUFFERED, OPEN, "out 4", EXPIRES, "out 4 0 0", 0},
    {BUFFERED, OPEN, "committing 4 1", EXPIRES, "committing 4 1 0", 0},
    {BUFFERED, OPEN, "accepted 4 1", EXPIRES, "accepted 4 1 0", 0},

#define REOPENS EVENT(ROSTER_REOPEN)
    {PLAIN, OPEN, "none", REOPENS, "none 0 0 0", FORGET},
    {PLAIN, OPEN, "out 5", REOPENS, "none 0 0 0", FORGET},
    {PLAIN, OPEN, "accepted 5 1", REOPENS, "accepted 5 1 0", 0},
    {PLAIN, OPEN, "aborted 5", REOPENS, "none 0 0 0", FORGET},
    {PLAIN, OPEN, "stopped 5", REOPENS, "none 0 0 0", FORGET},
    {LATE, OPEN, "none 0 1", REOPENS, "none 0 0 0", FORGET},

#define TURNS EVENT(ROSTER_TURN)
    {PLAIN, ROUND_FOLDING, "out 5", TURNS, "none 0 0 0", FORGET},
    {PLAIN, ROUND_FOLDING, "accepted 5 1", TURNS, "none 0 0 0", FORGET},
    {LATE, ROUND_FOLDING, "accepted 5 0 1", TURNS, "none 0 0 0", FORGET},
    {EVALUATION, ROUND_FOLDING, "out 4 1", TURNS, "none 0 0 0", FORGET},
    {BUFFERED, ROUND_FOLDING, "out 4", TURNS, "out 4 0 0", 0},
    {BUFFERED, ROUND_FOLDING, "out 4 1", TURNS, "out 4 0 0", 0},
    {BUFFERED, ROUND_FOLDING, "committing 5 1 1", TURNS, "committing 5 1 0", 0},
    {BUFFERED, ROUND_FOLDING, "committing 5 1", TURNS, "committing 5 0 0", 0},
    {BUFFERED, ROUND_FOLDING, "accepted 5 1", TURNS, "none 0 0 0", FORGET},
    {BUFFERED, ROUND_FOLDING, "accepted 5 1 1", TURNS, "accepted 5 1 0", 0},
    {BUFFERED, ROUND_FOLDING, "aborted 4", TURNS, "none 0 0 0", FORGET},
    {BUFFERED, ROUND_FOLDING, "stopped 4", TURNS, "none 0 0 0", FORGET},
    {BUFFERED, ROUND_FOLDING, "expired 4", TURNS, "none 0 0 0", FORGET},
    {BUFFERED, ROUND_FOLDING, "expired 4 0 1", TURNS, "expired 4 1 0", 0},

#define FINDS(n, into) EVENT(ROSTER_FOUND, .round = (n), .folded = (into))
    {PLAIN, ROUND_IDLE, "none", FINDS(5, 5), "accepted 5 1 0", 0},
    {LATE, ROUND_IDLE, "none", FINDS(4, 5), "none 0 1 0", 0},
    {LATE, ROUND_IDLE, "none 0 1", FINDS(5, 6), "accepted 5 1 1", 0},
    {EVALUATION, ROUND_IDLE, "none", FINDS(5, 5), "accepted 5 0 0", 0},
    {BUFFERED, ROUND_IDLE, "none 0 1", FINDS(4, 6), "none 0 1 1", 0},
    {BUFFERED, ROUND_IDLE, "none 0 1", EVENT(ROSTER_FOUND_OUT, .round = 4), "out 4 1 0", 0},
    {BUFFERED, ROUND_IDLE, "accepted 5 1", EVENT(ROSTER_FOUND_OUT, .round = 4), "out 4 1 0", 0},
};

static void
test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct row *r = &rows[i];
		struct roster_place p = place_of(r->before);
		struct scene s;
		set(&s, r->job, r->state);
		const unsigned actions = roster_step(&p, &s.round, &r->e, NOW);
		if (strcmp(text_of(&p), r->after) != 0 || actions != r->actions)
			fail_msg("row %zu: %s, event %d: %s, actions %#x; not %s, %#x", i,
			    r->before, r->e.kind, text_of(&p), actions, r->after, r->actions);
	}
}

static unsigned
step(struct roster_place *p, const struct scene *s, enum roster_event_kind kind, uint64_t now)
{
	return roster_step(p, &s->round, &(struct roster_event){.kind = kind}, now);
}

/* Its time runs from the moment when it was given, or renewed; asking again moves nothing. */
static void
test_expiry(void **state)
{
	struct roster_place p = {.state = ROSTER_NONE};
	struct scene s;

	(void)state;
	set(&s, BUFFERED, ROUND_OPEN);
	assert_int_equal(step(&p, &s, ROSTER_GIVE, NOW), RENAME);
	assert_int_equal(p.until_ms, NOW + TIMEOUT);
	assert_int_equal(step(&p, &s, ROSTER_ASK, NOW + 500), HAND);
	assert_int_equal(step(&p, &s, ROSTER_EXPIRE, NOW + TIMEOUT - 1), 0);
	s.round.number++;
	assert_int_equal(step(&p, &s, ROSTER_ASK, NOW + 600), RENAME);
	assert_int_equal(step(&p, &s, ROSTER_EXPIRE, NOW + TIMEOUT), 0);
	assert_int_equal(step(&p, &s, ROSTER_EXPIRE, NOW + 600 + TIMEOUT), END | FREE);
	assert_int_equal(step(&p, &s, ROSTER_EXPIRE, NOW + 600 + TIMEOUT), 0);
	assert_string_equal(text_of(&p), "expired 6 0 0");
}

/* In the round that took its delta, and in as many more as the job says. */
static void
test_rests(void **state)
{
	const struct roster_event taken = {ROSTER_SETTLED, .round = 5, .folded = 5};
	struct roster_place p = place_of("out 5 1");
	struct scene s;

	(void)state;
	set(&s, HOSTILE, ROUND_OPEN);
	s.round.per_device = 3;
	assert_int_equal(step(&p, &s, ROSTER_ASK, NOW), HAND);
	assert_int_equal(roster_step(&p, &s.round, &taken, NOW), SETTLE | END);
	p.state = ROSTER_EXPIRED;
	assert_int_equal(step(&p, &s, ROSTER_ASK, NOW), REPORTED);
	s.round.rest = 2;
	assert_int_equal(step(&p, &s, ROSTER_TURN, NOW), ROSTER_DO_HEARD);
	for (s.round.number = 6; s.round.number < 8; s.round.number++)
		assert_int_equal(step(&p, &s, ROSTER_ASK, NOW), REPORTED);
	assert_int_equal(step(&p, &s, ROSTER_ASK, NOW), ENTER);
	/* A task that it has is its own, rest or not. */
	assert_int_equal(step(&p, &s, ROSTER_GIVE, NOW), RENAME);
	s.round.number = 6;
	assert_int_equal(step(&p, &s, ROSTER_ASK, NOW), RENAME);
	/* Not where no rule bears hostile devices. */
	set(&s, BUFFERED, ROUND_OPEN);
	p = (struct roster_place){.folded = 5, .asked_ms = NOW};
	assert_int_equal(step(&p, &s, ROSTER_ASK, NOW), ENTER);
	assert_int_equal(step(&p, &s, ROSTER_TURN, NOW), FORGET);
}

/* Who has not asked for an hour counts no more, and its last delta is forgotten. */
static void
test_heard(void **state)
{
	const struct roster_event found = {ROSTER_FOUND_FOLDED, .folded = 4};
	struct roster_place p = {.state = ROSTER_NONE};
	struct scene s;

	(void)state;
	set(&s, HOSTILE, ROUND_FOLDING);
	assert_int_equal(step(&p, &s, ROSTER_TURN, NOW), FORGET);
	assert_int_equal(roster_step(&p, &s.round, &found, NOW), 0);
	assert_int_equal(step(&p, &s, ROSTER_TURN, NOW + ROSTER_HEARD_MS - 1), ROSTER_DO_HEARD);
	assert_int_equal(p.folded, 4);
	assert_int_equal(step(&p, &s, ROSTER_TURN, NOW + ROSTER_HEARD_MS), FORGET);
	assert_int_equal(p.folded, 0);
	s.machine.state = ROUND_OPEN;
	(void)step(&p, &s, ROSTER_GIVE, NOW);
	assert_int_equal(step(&p, &s, ROSTER_TURN, NOW), 0);
	(void)step(&p, &s, ROSTER_ASK, NOW);
	assert_int_equal(step(&p, &s, ROSTER_TURN, NOW), ROSTER_DO_HEARD);
	assert_int_equal(p.state, ROSTER_OUT);
	assert_int_equal(step(&p, &s, ROSTER_HEAR, NOW + 5), 0);
	assert_int_equal(step(&p, &s, ROSTER_TURN, NOW + 4 + ROSTER_HEARD_MS), ROSTER_DO_HEARD);
	set(&s, BUFFERED, ROUND_FOLDING);
	p = (struct roster_place){.state = ROSTER_NONE};
	assert_int_equal(roster_step(&p, &s.round, &found, NOW), 0);
	assert_int_equal(p.folded, 0);
}

static void
test_words(void **state)
{
	struct roster_place p = {.state = ROSTER_NONE};
	struct scene s;

	(void)state;
	assert_int_equal(roster_wait(HAND | ROSTER_DO_RENAME), WAIT_NONE);
	assert_int_equal(roster_wait(ENTER), WAIT_NONE);
	assert_int_equal(roster_wait(REPORTED), WAIT_REPORTED);
	assert_int_equal(roster_wait(ROSTER_DO_UNSENT), WAIT_UNSENT);
	assert_int_equal(roster_wait(ROSTER_DO_ABORTED), WAIT_ABORTED);
	assert_int_equal(roster_wait(ROSTER_DO_WAIT), WAIT_NOT_SELECTED);
	set(&s, BUFFERED, ROUND_OPEN);
	for (; p.state <= ROSTER_EXPIRED; p.state++) {
		const bool out = p.state == ROSTER_OUT || p.state == ROSTER_EXPIRED;
		p.round = 4;
		assert_int_equal(roster_wants_unsent(&p, &s.round), out);
		p.round = 5;
		assert_false(roster_wants_unsent(&p, &s.round));
		assert_int_equal(
		    roster_is_invited(&p), p.state >= ROSTER_OUT && p.state <= ROSTER_ABORTED);
	}
}

/* --- a delta's head */

struct head_row {
	enum job job;
	enum round_state state;
	const char *place;
	uint64_t round;
	uint8_t base; /* all bytes; a round's are its number */
	enum roster_refusal refusal;
	uint64_t taker;
};
static const struct head_row heads[] = {
    {PLAIN, OPEN, "out 5", 5, 5, ROSTER_ACCEPTS, 5},
    {PLAIN, OPEN, "none", 5, 5, ROSTER_ACCEPTS, 5},
    {PLAIN, OPEN, "out 5", 4, 4, ROSTER_NO_ROUND, 0},
    {PLAIN, OPEN, "out 5", 6, 5, ROSTER_NO_ROUND, 0},
    {PLAIN, OPEN, "out 5", 5, 4, ROSTER_ROUND_BASE, 0},
    {PLAIN, OPEN, "accepted 5 1", 5, 5, ROSTER_USED, 0},
    {PLAIN, OPEN, "accepted 5 1", 5, 4, ROSTER_ROUND_BASE, 0},
    {PLAIN, ROUND_CLOSING, "out 5", 5, 5, ROSTER_CLOSED, 0},
    {PLAIN, ROUND_CLOSING, "accepted 5 1", 5, 5, ROSTER_USED, 0},
    {PLAIN, ROUND_IDLE, "out 5", 5, 5, ROSTER_CLOSED, 0},
    {EVALUATION, OPEN, "out 5", 4, 4, ROSTER_NO_ROUND, 0},
    {LATE, OPEN, "none", 4, 4, ROSTER_ACCEPTS, 5},
    {LATE, OPEN, "none", 3, 3, ROSTER_TOO_OLD, 0},
    {LATE, OPEN, "none", 6, 5, ROSTER_NO_ROUND, 0},
    {LATE, OPEN, "none", 4, 5, ROSTER_TASK_BASE, 0},
    {LATE, ROUND_CLOSING, "out 5", 5, 5, ROSTER_ACCEPTS, 6},
    {LATE, ROUND_CLOSING, "out 5", 5, 4, ROSTER_TASK_BASE, 0},
    {LATE, ROUND_CLOSING, "none", 4, 4, ROSTER_TOO_OLD, 0},
    {LATE, ROUND_CLOSING, "accepted 5 1", 5, 5, ROSTER_USED, 0},
    {LATE, OPEN, "out 5 2", 5, 5, ROSTER_ACCEPTS, 6},
    {LATE, OPEN, "out 5 2 2", 5, 5, ROSTER_ENOUGH, 0},
    {LATE, ROUND_CLOSING, "out 5 0 2", 5, 5, ROSTER_ENOUGH, 0},
    {LATE, OPEN, "out 5 2", 4, 4, ROSTER_AGED, 0},
    {BUFFERED, OPEN, "out 3", 3, 3, ROSTER_ACCEPTS, 5},
    {BUFFERED, OPEN, "out 3", 2, 2, ROSTER_TOO_OLD, 0},
    {BUFFERED, OPEN, "committing 5 1", 5, 5, ROSTER_ACCEPTS, 6},
    {BUFFERED, OPEN, "accepted 4 1", 4, 4, ROSTER_USED, 0},
    {BUFFERED, OPEN, "accepted 4 1", 4, 5, ROSTER_TASK_BASE, 0},
    {BUFFERED, OPEN, "accepted 4 1", 3, 3, ROSTER_AGED, 0},
    {BUFFERED, ROUND_FOLDING, "out 4", 4, 4, ROSTER_ACCEPTS, 6},
    {BUFFERED, ROUND_ENDED, "out 5", 5, 5, ROSTER_CLOSED, 0},
};

static struct roster_verdict
judge(struct scene *s, const struct head_row *r, const struct roster_head *h)
{
	const struct roster_place p = place_of(r->place);

	return roster_judge(&p, &s->round, h);
}

static void
test_heads(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
		const struct head_row *r = &heads[i];
		struct scene s;
		uint8_t base[32];
		memset(base, r->base, sizeof(base));
		set(&s, r->job, r->state);
		const uint8_t *open = s.points[0].base;
		struct roster_head h = {r->round, base, open, true, r->job == EVALUATION};
		const struct roster_verdict v = judge(&s, r, &h);
		if (v.refusal != r->refusal || v.round != r->taker)
			fail_msg("head %zu: refusal %d, round %llu", i, v.refusal,
			    (unsigned long long)v.round);
		if (!v.refusal)
			assert_int_equal(v.late, r->taker - r->round);
		/* What is said of the task comes after its age and its own round's base, and before all else. */
		const bool first = v.refusal >= ROSTER_NO_ROUND && v.refusal <= ROSTER_TASK_BASE;
		h.is_its_task = false;
		assert_int_equal(judge(&s, r, &h).refusal, first ? v.refusal : ROSTER_OTHER_TASK);
		/* And of its kind last. */
		h.is_its_task = true;
		h.evaluates = !h.evaluates;
		assert_int_equal(
		    judge(&s, r, &h).refusal, v.refusal ? v.refusal : ROSTER_OTHER_KIND);
	}
}

/* A guard that went back, or may; and a job that is over. */
static void
test_guarded(void **state)
{
	static const struct head_row late = {LATE, OPEN, "none", 4, 4, ROSTER_ACCEPTS, 5};
	struct roster_place p = place_of("out 5");
	struct scene s;

	(void)state;
	set(&s, LATE, ROUND_OPEN);
	struct roster_head h = {4, s.points[1].base, s.points[0].base, true, false};
	s.points[1].live = false;
	assert_int_equal(judge(&s, &late, &h).refusal, ROSTER_GIVEN_UP);
	s.points[1].live = s.round.evaluates = true;
	assert_int_equal(judge(&s, &late, &h).refusal, ROSTER_NO_ROUND);
	s.round.evaluates = s.round.lives = false;
	assert_int_equal(judge(&s, &late, &h).refusal, ROSTER_NO_ROUND);
	h = (struct roster_head){5, s.points[0].base, s.points[0].base, true, false};
	assert_int_equal(roster_judge(&p, &s.round, &h).refusal, ROSTER_NO_ROUND);
	set(&s, LATE, ROUND_OPEN);
	s.round.defers = true;
	assert_int_equal(roster_judge(&p, &s.round, &h).refusal, ROSTER_ACCEPTS);
	p.now = 2;
	assert_int_equal(roster_judge(&p, &s.round, &h).refusal, ROSTER_ENOUGH);
	p.now = 0;
	s.machine.state = ROUND_FOLDING;
	assert_int_equal(roster_judge(&p, &s.round, &h).refusal, ROSTER_DEFERRED);
	assert_int_equal(
	    roster_step(&p, &s.round, &(struct roster_event)TAKES(5), NOW), ROSTER_DO_LATER);
	for (enum roster_refusal r = ROSTER_NO_ROUND; r <= ROSTER_OTHER_KIND; r++)
		assert_true(roster_refusal_problem(r) != PROBLEM_NONE);
	assert_int_equal(roster_refusal_problem(ROSTER_ACCEPTS), PROBLEM_NONE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rows),
	    cmocka_unit_test(test_expiry),
	    cmocka_unit_test(test_rests),
	    cmocka_unit_test(test_heard),
	    cmocka_unit_test(test_words),
	    cmocka_unit_test(test_heads),
	    cmocka_unit_test(test_guarded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
