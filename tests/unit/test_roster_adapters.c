/* stages: gcc clang openssl address */
/*
 * One machine of rounds and the same events for the places that a coordinator keeps (daemon/jobs) and those that the simulator keeps
 * (lab/simulate/crowd): both are the same at any time, also where the simulator looks at a place only when it needs that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "crowd.h"
#include "jobs_inside.h"
#include "judge.h"
#include "population.h"
#include "prng.h"

/* The time of the coordinator's places; those of the simulator begin their clock an hour in, as this one does. */
static uint64_t now_us;

uint64_t
clock_ms(void)
{
	return now_us / 1000 + ROSTER_HEARD_MS;
}

double
clock_seconds(void)
{
	return (double)clock_ms() / 1000;
}

double
clock_wall(void)
{
	return clock_seconds();
}

int64_t
clock_unix(void)
{
	return (int64_t)clock_seconds();
}

uint64_t
clock_elapsed_ms(void)
{
	return clock_ms();
}

enum kind { PLAIN, SAMPLE, LATE, BUFFERED, HOSTILE, KINDS };
#define TIMEOUT_S 900

struct play {
	struct prng rng;
	struct fleet fleet;
	struct simulate_crowd crowd;
	struct job *job;
	uint64_t *tasks; /* of each device the round of the task that it works on; 0: it waits */
	uint64_t rounds, handed, taken, late, expired, reopened, drawn, rested;
};

static void tell(struct play *p, enum round_event event, uint32_t arg);

/* --- the same for both */

static unsigned
happens(struct play *p, size_t device, const struct roster_event *e)
{
	static const struct invite none;
	const uint8_t *id = p->fleet.devices[device].id;
	struct invite nothing = none;
	struct invite *v = invites_find(p->job, id);
	const bool makes = e->kind == ROSTER_GIVE || e->kind == ROSTER_TAKE ||
	    (e->kind != ROSTER_EXPIRE && roster_rests(&p->job->facts.round));

	if (!v && makes)
		v = invites_hold(p->job, id);
	const unsigned simulated = simulate_crowd_step(&p->crowd, device, e, now_us);
	const unsigned actions = invites_happens(p->job, v ? v : &nothing, e);
	assert_int_equal(actions, simulated);
	return actions;
}

static void
compare(const struct play *p)
{
	static const struct invite none;
	const bool rests = roster_rests(&p->job->facts.round);

	assert_true(!rests || p->job->rest == p->crowd.roster.rest);
	for (size_t i = 0; i < p->fleet.count; i++) {
		const struct invite *v = invites_find(p->job, p->fleet.devices[i].id);
		const struct roster_place *a = v ? &v->place : &none.place;
		const struct roster_place b = simulate_crowd_place(&p->crowd, i);
		if (a->state != b.state || a->round != b.round || a->now != b.now ||
		    a->next != b.next || (rests && a->folded != b.folded) ||
		    (a->state == ROSTER_OUT && a->until_ms != b.until_ms))
			fail_msg("device %zu: %d of %u, %u, %u, %u; simulated %d of %u, %u, %u, %u",
			    i, a->state, (unsigned)a->round, a->now, a->next, (unsigned)a->folded,
			    b.state, (unsigned)b.round, b.now, b.next, (unsigned)b.folded);
	}
}

static void
work_on(struct play *p, size_t device)
{
	p->tasks[device] = p->job->facts.row.round;
	simulate_crowd_leave(&p->crowd, device);
	p->handed++;
}

/* --- a round */

static bool
may_ask(const struct play *p, size_t device)
{
	return p->tasks[device] == 0 && fleet_is_there(&p->fleet, device, now_us);
}

/* As one that is away sends when it is back. */
static bool
may_send(const struct play *p, size_t device)
{
	return p->tasks[device] > 0 && fleet_is_there(&p->fleet, device, now_us);
}

static void
ask(struct play *p, size_t device)
{
	if (!may_ask(p, device))
		return;
	const bool asks = simulate_crowd_asks(&p->crowd, device, now_us);
	const unsigned actions = happens(p, device, &(struct roster_event){.kind = ROSTER_ASK});
	assert_int_equal(asks, (actions & ROSTER_DO_ENTER) != 0);
	p->rested += (actions & ROSTER_DO_REPORTED) != 0;
	if (actions & ROSTER_DO_HAND)
		work_on(p, device);
	if (!asks)
		return;
	if (round_step(&change_facts(p->job)->round, ROUND_ASK, 0, clock_ms()) & ROUND_DO_INVITE) {
		(void)happens(p, device, &(struct roster_event){.kind = ROSTER_GIVE});
		work_on(p, device);
	}
}

/* All who are there ask, as in the simulator, and of them both draw the same. */
static void
draw(struct play *p)
{
	const uint32_t places = round_places(&p->job->facts.round);
	size_t drawn[64];

	p->job->candidate_count = 0;
	for (size_t i = 0; i < p->fleet.count; i++)
		if (may_ask(p, i) && simulate_crowd_asks(&p->crowd, i, now_us))
			invites_note(p->job, p->fleet.devices[i].id);
	const size_t n =
	    simulate_crowd_draw(&p->crowd, drawn, places, p->job->work->spec.seed, now_us);
	assert_int_equal(invites_draw(p->job), n);
	for (size_t i = 0; i < n; i++) {
		(void)simulate_crowd_step(
		    &p->crowd, drawn[i], &(struct roster_event){.kind = ROSTER_GIVE}, now_us);
		work_on(p, drawn[i]);
	}
	p->drawn += n;
	tell(p, ROUND_DRAWN, (uint32_t)n);
}

static void
tell(struct play *p, enum round_event event, uint32_t arg)
{
	const unsigned actions = round_step(&change_facts(p->job)->round, event, arg, clock_ms());

	if (actions & ROUND_DO_REOPEN) {
		invites_happens_all(p->job, ROSTER_REOPEN);
		simulate_crowd_reopen(&p->crowd);
		p->reopened++;
	}
	if (actions & ROUND_DO_DRAW)
		draw(p);
}

/* Its delta comes: taken, and settled at once. */
static void
deliver(struct play *p, size_t device)
{
	const struct roster_round round = invites_round(p->job);
	const uint64_t task = p->tasks[device];
	struct roster_place place = simulate_crowd_place(&p->crowd, device);
	const struct roster_event take = {.kind = ROSTER_TAKE, .round = task};

	const struct roster_verdict v = roster_judge_round(&place, &round, task);
	const unsigned actions = happens(p, device, &take);
	p->tasks[device] = 0;
	simulate_crowd_wait(&p->crowd, device);
	assert_int_equal((actions & ROSTER_DO_TAKE) != 0, v.refusal == ROSTER_ACCEPTS);
	p->late += v.late > 0;
	if (!(actions & ROSTER_DO_TAKE))
		return;
	assert_false(actions & ROSTER_DO_NEXT);
	tell(p, ROUND_TAKE, actions & ROSTER_DO_FRESH ? ROUND_TAKE_FRESH : 0);
	(void)happens(p, device,
	    &(struct roster_event){.kind = ROSTER_SETTLED, .round = task, .folded = v.round});
	tell(p, ROUND_ACCEPTED, 0);
	p->taken++;
}

static void
give_up(struct play *p, size_t device)
{
	const struct roster_event e = {
	    .kind = ROSTER_GIVE_UP, .passes = prng_below(&p->rng, 2) == 0};
	const bool own = simulate_crowd_place(&p->crowd, device).round == p->tasks[device];

	p->tasks[device] = 0;
	simulate_crowd_wait(&p->crowd, device);
	if (own && (happens(p, device, &e) & ROSTER_DO_GAVE_UP))
		tell(p, ROUND_GAVE_UP, 0);
}

static void
open_round(struct play *p)
{
	struct job_work *w = p->job->work;

	change_facts(p->job)->row.round++;
	memmove(p->job->points + 1, p->job->points,
	    w->spec.round.max_staleness * sizeof(*p->job->points));
	p->job->points[0] = (struct late_point){.round = p->job->facts.row.round, .live = true};
	p->job->point_count += p->job->point_count <= w->spec.round.max_staleness;
	/* A guard went back: bases of before are given up. */
	for (size_t i = 1; prng_below(&p->rng, 9) == 0 && i < p->job->point_count; i++)
		p->job->points[i].live = false;
	simulate_crowd_open(&p->crowd, p->job->facts.row.round, p->job->point_count, false, now_us);
	tell(p, ROUND_BEGIN, 0);
	p->rounds++;
}

/* A device that is there and waits asks over and over, but is not always looked at. */
static void
poll_all(struct play *p)
{
	if (!roster_rests(&p->job->facts.round))
		return;
	for (size_t i = 0; i < p->fleet.count; i++)
		if (p->tasks[i] == 0 && fleet_is_there(&p->fleet, i, now_us)) {
			struct invite *v = invites_hold(p->job, p->fleet.devices[i].id);
			(void)invites_happens(
			    p->job, v, &(struct roster_event){.kind = ROSTER_HEAR});
		}
}

static void
fold(struct play *p)
{
	while (p->job->facts.round.state == ROUND_FOLDING) {
		poll_all(p);
		invites_happens_all(p->job, ROSTER_TURN);
		tell(p, ROUND_FOLDED, 0);
		open_round(p);
	}
}

static void
pass_to(struct play *p, uint64_t us)
{
	poll_all(p);
	while (now_us / FLEET_PERIOD_US < us / FLEET_PERIOD_US) {
		const uint64_t hour = (now_us / FLEET_PERIOD_US + 1) * FLEET_PERIOD_US;
		struct roster_event heard = {.kind = ROSTER_HEAR};
		for (size_t i = 0; roster_rests(&p->job->facts.round) && i < p->fleet.count; i++)
			if (p->tasks[i] == 0 && fleet_is_there(&p->fleet, i, now_us)) {
				struct invite *v = invites_hold(p->job, p->fleet.devices[i].id);
				const uint64_t was = now_us;
				now_us = hour;
				(void)invites_happens(p->job, v, &heard);
				now_us = was;
			}
		now_us = hour;
		poll_all(p);
	}
	now_us = us;
	poll_all(p);
}

static void
pass(struct play *p)
{
	const uint64_t most = prng_below(&p->rng, 8) ? 300000000 : 5400000000;

	pass_to(p, now_us + prng_below(&p->rng, most));
	for (size_t i = 0; i < p->fleet.count; i++) {
		const struct roster_event over = {.kind = ROSTER_EXPIRE};
		if (happens(p, i, &over) & ROSTER_DO_FREE) {
			p->expired++;
			tell(p, ROUND_EXPIRED, 0);
		}
	}
	tell(p, ROUND_TICK, 0);
}

static void
happen(struct play *p)
{
	const size_t device = prng_below(&p->rng, p->fleet.count);

	switch (prng_below(&p->rng, 12)) {
	case 0:
		pass(p);
		break;
	case 1:
		if (may_send(p, device))
			give_up(p, device);
		break;
	case 2:
	case 3:
	case 4:
	case 5:
		if (may_send(p, device))
			deliver(p, device);
		break;
	default:
		ask(p, device);
	}
	fold(p);
}

/* --- beginning and end */

static struct round_policy
policy_of(enum kind kind)
{
	return (struct round_policy){.goal = 3,
	    .quorum = 2,
	    .hostile = kind == HOSTILE,
	    .invite_max = kind >= BUFFERED ? 12 : 5,
	    .deadline_ms = 400000,
	    .grace_ms = 20000,
	    .sample_ms = 10000,
	    .late = kind >= LATE,
	    .buffered = kind >= BUFFERED,
	    .sample = kind == SAMPLE};
}

static void
begin_fleet(struct play *p, uint64_t seed)
{
	static const char table[] = "name,count,samples_per_s,available\na,20,1,1\nb,20,1,0.5\n";
	struct fleet_profiles profiles;
	struct why why;

	assert_int_equal(
	    fleet_profiles_parse(&profiles, "f", table, sizeof(table) - 1, &why), ERR_OK);
	assert_int_equal(fleet_init(&p->fleet, &profiles, 0, seed, &why), ERR_OK);
	p->tasks = calloc(p->fleet.count, sizeof(*p->tasks));
	assert_non_null(p->tasks);
}

static void
begin_job(struct play *p, enum kind kind, uint64_t seed)
{
	static const uint8_t id[16] = {1};
	const struct round_policy policy = policy_of(kind);
	struct round_spec *spec;

	p->job = job_blank(id);
	assert_non_null(p->job);
	p->job->work = calloc(1, sizeof(*p->job->work));
	assert_non_null(p->job->work);
	spec = &p->job->work->spec.round;
	spec->per_device = kind == LATE ? 2 : 1 + (uint32_t)(seed % 2);
	spec->max_staleness = kind >= BUFFERED ? 3 : kind == LATE;
	p->job->work->spec.seed = seed;
	p->job->work->terms.round.task_timeout_s = TIMEOUT_S;
	p->job->points = calloc(spec->max_staleness + 1, sizeof(struct late_point));
	assert_non_null(p->job->points);
	change_facts(p->job)->state = JOB_RUNNING;
	change_facts(p->job)->row.state = OUTCOME_OPEN;
	round_init(&change_facts(p->job)->round, &policy, 0);
}

static void
begin(struct play *p, enum kind kind, uint64_t seed)
{
	*p = (struct play){.rounds = 0};
	now_us = 0;
	prng_seed2(&p->rng, seed, kind);
	begin_fleet(p, seed);
	begin_job(p, kind, seed);
	const struct roster_round round = invites_round(p->job);
	assert_int_equal(simulate_crowd_init(&p->crowd, &p->fleet, &round, false), ERR_OK);
	for (size_t i = 0; i < p->fleet.count; i++)
		simulate_crowd_wait(&p->crowd, i);
	open_round(p);
}

/* The last model is measured: no task outlives the rounds of its kind. */
static void
evaluate(struct play *p)
{
	struct round_policy policy = policy_of(PLAIN);

	policy.once = true;
	invites_happens_all(p->job, ROSTER_TURN);
	change_facts(p->job)->row.state = OUTCOME_EVALUATING;
	change_facts(p->job)->row.round++;
	round_init(&change_facts(p->job)->round, &policy, 0);
	invites_happens_all(p->job, ROSTER_TURN);
	simulate_crowd_open(&p->crowd, p->job->facts.row.round, p->job->point_count, true, now_us);
	tell(p, ROUND_BEGIN, 0);
	compare(p);
	for (int i = 0; i < 40; i++) {
		ask(p, prng_below(&p->rng, p->fleet.count));
		compare(p);
	}
}

static void
end(struct play *p)
{
	simulate_crowd_deinit(&p->crowd);
	job_free(p->job);
	free(p->tasks);
	fleet_deinit(&p->fleet);
}

static void
same_places(void **state)
{
	const char *given = getenv("SEED");
	const uint64_t first = given ? strtoull(given, NULL, 10) : 1;
	struct play sum = {.rounds = 0}, p;

	(void)state;
	for (uint64_t seed = first; seed < first + 4; seed++)
		for (enum kind kind = PLAIN; kind < KINDS; kind++) {
			begin(&p, kind, seed);
			for (int i = 0; i < 1500; i++) {
				happen(&p);
				compare(&p);
			}
			evaluate(&p);
			sum.rounds += p.rounds, sum.handed += p.handed, sum.taken += p.taken;
			sum.late += p.late, sum.expired += p.expired, sum.drawn += p.drawn;
			sum.reopened += p.reopened, sum.rested += p.rested;
			end(&p);
		}
	printf("SEED=%llu: %llu rounds, %llu tasks (%llu drawn), %llu deltas (%llu late), %llu "
	       "expired, %llu reopened, %llu told to wait\n",
	    (unsigned long long)first, (unsigned long long)sum.rounds,
	    (unsigned long long)sum.handed, (unsigned long long)sum.drawn,
	    (unsigned long long)sum.taken, (unsigned long long)sum.late,
	    (unsigned long long)sum.expired, (unsigned long long)sum.reopened,
	    (unsigned long long)sum.rested);
	assert_true(sum.rounds > 100 && sum.drawn > 50 && sum.late > 50 && sum.expired > 20);
	assert_true(sum.reopened > 5 && sum.rested > 100);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(same_places)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
