/* stages: gcc address */
/* The places of one job and its round together, under random events: what must hold whatever comes. */
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

#define DEVICES 12
#define POINTS 4
#define ROUNDS 1000

/* A delta on its way to the disk. */
struct commit {
	size_t device;
	struct roster_event e;
};

struct play {
	struct prng rng;
	struct round m;
	struct roster_round r;
	struct late_point points[POINTS];
	struct roster_place places[DEVICES];
	bool asked[DEVICES]; /* for the draw */
	/* Tasks that a device has had, and those of them that have a delta: a store takes no second one. */
	bool had[DEVICES][ROUNDS], has[DEVICES][ROUNDS];
	struct commit commits[DEVICES];
	size_t commit_count;
	uint64_t now, losses, taken, handed, reopened, turns, expired, later;
	bool loses; /* commits fail now and then */
};

static void reopen(struct play *p);
static void draw(struct play *p);

static unsigned
tell(struct play *p, enum round_event event, uint32_t arg)
{
	const unsigned actions = round_step(&p->m, event, arg, p->now);

	if (actions & ROUND_DO_REOPEN)
		reopen(p);
	if (actions & ROUND_DO_DRAW)
		draw(p);
	return actions;
}

static unsigned
step(struct play *p, size_t device, const struct roster_event *e)
{
	return roster_step(&p->places[device], &p->r, e, p->now);
}

static void
reopen(struct play *p)
{
	for (size_t i = 0; i < DEVICES; i++)
		(void)step(p, i, &(struct roster_event){.kind = ROSTER_REOPEN});
	memset(p->asked, 0, sizeof(p->asked));
	p->reopened++;
}

static void
give(struct play *p, size_t device)
{
	const unsigned actions = step(p, device, &(struct roster_event){.kind = ROSTER_GIVE});

	assert_true(actions & ROSTER_DO_HAND);
	p->had[device][p->r.number] = true;
	p->handed++;
}

static void
draw(struct play *p)
{
	uint32_t places = round_places(&p->m), drawn = 0;

	for (size_t i = 0; i < DEVICES && drawn < places; i++)
		if (p->asked[i] && !roster_is_invited(&p->places[i])) {
			give(p, i);
			drawn++;
		}
	memset(p->asked, 0, sizeof(p->asked));
	(void)tell(p, ROUND_DRAWN, drawn);
}

static void
ask(struct play *p, size_t device)
{
	const struct roster_place was = p->places[device];
	const bool unsent = roster_wants_unsent(&was, &p->r) && prng_below(&p->rng, 4) == 0;
	const struct roster_event e = {.kind = ROSTER_ASK, .unsent = unsent};
	const unsigned actions = step(p, device, &e);
	const bool gets = actions & ROSTER_DO_HAND, enters = actions & ROSTER_DO_ENTER;

	/* One answer, and a task of the open round or none. */
	assert_int_equal(gets + enters + (roster_wait(actions) != WAIT_NONE), 1);
	if (unsent)
		assert_false(gets || enters);
	if (gets)
		assert_true(p->places[device].state == ROSTER_OUT &&
		    p->places[device].round == p->r.number && !round_has_closed(&p->m));
	p->had[device][p->r.number] |= gets;
	if (!enters)
		return;
	assert_false(roster_is_invited(&was) && was.round == p->r.number);
	p->asked[device] |= p->m.state == ROUND_GATHER;
	if (tell(p, ROUND_ASK, 0) & ROUND_DO_INVITE)
		give(p, device);
}

/* A device sends one delta at a time. */
static bool
sends(const struct play *p, size_t device)
{
	for (size_t i = 0; i < p->commit_count; i++)
		if (p->commits[i].device == device)
			return true;
	return false;
}

static void
take(struct play *p, size_t device, uint64_t round)
{
	const struct roster_place was = p->places[device];
	const struct roster_verdict v = roster_judge_round(&was, &p->r, round);
	const struct roster_event e = {.kind = ROSTER_TAKE, .round = round};

	if (round >= ROUNDS || !p->had[device][round] || p->has[device][round] || sends(p, device))
		return;
	const unsigned actions = step(p, device, &e);
	if (!(actions & ROSTER_DO_TAKE)) {
		p->later += actions == ROSTER_DO_LATER;
		assert_memory_equal(&p->places[device], &was, sizeof(was));
		assert_true(v.refusal || was.state == ROSTER_COMMITTING);
		return;
	}
	const bool next = actions & ROSTER_DO_NEXT, fresh = actions & ROSTER_DO_FRESH;
	assert_false(
	    was.round == round && (was.state == ROSTER_COMMITTING || was.state == ROSTER_ACCEPTED));
	assert_int_equal(v.round, p->r.number + next);
	assert_true(v.late <= p->r.max_staleness);
	const unsigned did =
	    tell(p, ROUND_TAKE, (fresh ? ROUND_TAKE_FRESH : 0) | (next ? ROUND_TAKE_NEXT : 0));
	assert_true(did & ROUND_DO_TAKE);
	assert_int_equal((did & ROUND_DO_TAKE_NEXT) != 0, next);
	p->commits[p->commit_count++] =
	    (struct commit){device, {.round = round, .folded = p->r.number + next, .fresh = fresh}};
	p->has[device][round] = true;
	p->taken++;
}

static void
settle(struct play *p)
{
	const size_t at = p->commit_count > 0 ? prng_below(&p->rng, p->commit_count) : 0;
	struct commit c = p->commits[at];
	const bool durable = !p->loses || prng_below(&p->rng, 5) > 0;

	if (p->commit_count == 0)
		return;
	p->commits[at] = p->commits[--p->commit_count];
	c.e.kind = durable ? ROSTER_SETTLED : ROSTER_LOST;
	const unsigned actions = step(p, c.device, &c.e);
	assert_true(actions & ROSTER_DO_SETTLE);
	p->losses += !durable;
	p->has[c.device][c.e.round] = durable;
	(void)tell(p, durable ? ROUND_ACCEPTED : ROUND_LOST, (actions & ROSTER_DO_NEXT) != 0);
	if (actions & ROSTER_DO_FREE)
		(void)tell(p, ROUND_EXPIRED, 0);
}

static void
give_up(struct play *p, size_t device)
{
	const struct roster_event e = {
	    .kind = ROSTER_GIVE_UP, .passes = prng_below(&p->rng, 2) == 0};

	/* No device gives up what it has sent, nor sends what it gave up. */
	if (p->has[device][p->places[device].round])
		return;
	const unsigned actions = step(p, device, &e);
	if (actions & ROSTER_DO_END)
		p->had[device][p->places[device].round] = false;
	if (actions & ROSTER_DO_GAVE_UP)
		(void)tell(p, ROUND_GAVE_UP, 0);
}

static void
pass(struct play *p)
{
	p->now += prng_below(&p->rng, 400);
	(void)tell(p, ROUND_TICK, 0);
	for (size_t i = 0; i < DEVICES; i++)
		if (step(p, i, &(struct roster_event){.kind = ROSTER_EXPIRE}) & ROSTER_DO_FREE) {
			p->expired++;
			(void)tell(p, ROUND_EXPIRED, 0);
		}
}

static void
open_points(struct play *p)
{
	memmove(p->points + 1, p->points, (POINTS - 1) * sizeof(*p->points));
	p->points[0] = (struct late_point){.round = p->r.number, .live = true};
	p->r.point_count += p->r.point_count <= p->r.max_staleness;
}

/* What is folded makes way for the next round. */
static void
turn(struct play *p)
{
	uint64_t heard = 0;

	if (p->m.state != ROUND_FOLDING)
		return;
	for (size_t i = 0; i < DEVICES; i++)
		heard += (step(p, i, &(struct roster_event){.kind = ROSTER_TURN}) &
			     ROSTER_DO_HEARD) != 0;
	p->r.rest = late_rest(heard, p->m.policy.goal);
	memset(p->asked, 0, sizeof(p->asked));
	(void)tell(p, ROUND_FOLDED, 0);
	p->r.number++;
	open_points(p);
	(void)tell(p, ROUND_BEGIN, 0);
	p->turns++;
}

/* --- what holds */

static void
check(const struct play *p)
{
	uint32_t out = 0, now = 0, next = 0;

	for (size_t i = 0; i < DEVICES; i++) {
		const struct roster_place *v = &p->places[i];
		out += v->state == ROSTER_OUT;
		now += v->now;
		next += v->next;
		assert_true(v->round <= p->r.number);
		if (p->m.policy.late)
			assert_true(v->now <= p->r.per_device && v->next <= p->r.per_device);
	}
	assert_true(round_out(&p->m) <= p->m.policy.invite_max + p->losses);
	assert_true(p->m.accepted + round_out(&p->m) <= p->m.invited);
	if (!p->m.policy.buffered) {
		assert_true(now <= p->m.accepted + p->m.committing);
		assert_true(next <= p->m.next_accepted + p->m.next_committing);
		return;
	}
	/* Each task that is out has its place in the round, and each delta in a buffer its device. */
	assert_int_equal(out, round_out(&p->m));
	assert_int_equal(now, p->m.accepted + p->m.committing);
	assert_int_equal(next, p->m.next_accepted + p->m.next_committing);
}

static void
happen(struct play *p)
{
	const size_t device = prng_below(&p->rng, DEVICES);
	const uint64_t back = prng_below(&p->rng, POINTS);

	switch (prng_below(&p->rng, 16)) {
	case 0:
	case 1:
	case 2:
	case 3:
		ask(p, device);
		break;
	case 4:
	case 5:
	case 6:
		take(p, device, p->places[device].round);
		break;
	case 7:
		take(p, device, p->r.number > back ? p->r.number - back : p->r.number + 1);
		break;
	case 8:
	case 9:
	case 10:
		settle(p);
		break;
	case 11:
		give_up(p, device);
		break;
	case 12:
		pass(p);
		break;
	case 13:
		(void)tell(p, prng_below(&p->rng, 4) ? ROUND_RESUME : ROUND_PAUSE, 0);
		break;
	default:
		turn(p);
	}
}

enum job { PLAIN, SAMPLE, LATE, BUFFERED, HOSTILE, JOBS };

static void
begin(struct play *p, enum job job, uint64_t seed, bool loses)
{
	const bool buffered = job >= BUFFERED;
	const struct round_policy policy = {.goal = 3,
	    .quorum = 2,
	    .hostile = job == HOSTILE,
	    .invite_max = 5,
	    .deadline_ms = 900,
	    .grace_ms = 50,
	    .sample_ms = 40,
	    .late = job >= LATE,
	    .buffered = buffered,
	    .sample = job == SAMPLE};

	*p = (struct play){.now = 10000000, .loses = loses};
	prng_seed2(&p->rng, seed, job);
	round_init(&p->m, &policy, 0);
	p->r = (struct roster_round){.machine = &p->m,
	    .number = 1,
	    .timeout_ms = 700,
	    .per_device = job == LATE ? 2 : 1 + (uint32_t)(seed % 2),
	    .max_staleness = buffered ? 2 : job == LATE,
	    .lives = true,
	    .defers = buffered && seed % 3 == 0,
	    .points = p->points};
	open_points(p);
	(void)tell(p, ROUND_BEGIN, 0);
}

static void
test_random(void **state)
{
	const char *given = getenv("SEED");
	const uint64_t first = given ? strtoull(given, NULL, 10) : 1;
	uint64_t taken = 0, handed = 0, reopened = 0, turns = 0, expired = 0, losses = 0, later = 0;
	static struct play p;

	(void)state;
	for (uint64_t seed = first; seed < first + 40; seed++)
		for (enum job job = PLAIN; job < JOBS; job++) {
			begin(&p, job, seed, seed % 2 == 0);
			for (int i = 0; i < 3000; i++) {
				happen(&p);
				check(&p);
			}
			taken += p.taken, handed += p.handed, reopened += p.reopened;
			turns += p.turns, expired += p.expired, losses += p.losses;
			later += p.later;
		}
	printf("SEED=%llu: %llu tasks, %llu deltas (%llu lost, %llu put off), %llu rounds, %llu "
	       "reopened, %llu expired\n",
	    (unsigned long long)first, (unsigned long long)handed, (unsigned long long)taken,
	    (unsigned long long)losses, (unsigned long long)later, (unsigned long long)turns,
	    (unsigned long long)reopened, (unsigned long long)expired);
	assert_true(handed > 1000 && taken > 1000 && losses > 100 && turns > 1000);
	assert_true(reopened > 10 && expired > 100 && later > 100);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
