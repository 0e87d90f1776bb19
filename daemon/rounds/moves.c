#include <string.h>

#include "clock.h"
#include "health.h"
#include "job_needs.h"
#include "log.h"
#include "report.h"
#include "rounds_inside.h"

/* Whether jobs move. */

#define LOOK_MS 1000
/* Who is reached is looked at device by device: so many jobs in a look, and each of those that want it as seldom as that takes. */
#define REACHES 4
#define REACH_MS 3000

/* What one look at all jobs goes by. */
struct stuck_look {
	uint64_t now_ms, reach_ms; /* reaches of before that are too old */
	struct health_report health;
	size_t wanted, left; /* reaches */
	uint64_t tasks; /* that are out */
};

/* Lock held. */
static struct stuck_facts
facts_of(struct engine *g, struct job *j, const struct stuck_look *l)
{
	const struct job_facts *facts = job_facts(j);
	const struct job_work *w = facts->work;
	const struct round *r = &facts->round;

	return (struct stuck_facts){.state = facts->state,
	    .reason = facts->reason,
	    .by_hand = jobs_paused_by_hand(j),
	    .aside = r->state == ROUND_ENDED || facts->lack.kind != LACKS_NOTHING,
	    .unready = l->health.reason,
	    .detail = l->health.detail,
	    .evaluates = job_evaluates(j),
	    .evaluation = w->unmeasured,
	    .fold_failures = r->state == ROUND_FOLDING ? job_pace(j)->fold_failures : 0,
	    .is_open = r->state == ROUND_GATHER || r->state == ROUND_OPEN,
	    .round = facts->row.round,
	    .quorum = r->policy.quorum,
	    .per_device = r->policy.buffered ? w->spec.round.per_device : 1,
	    .accepted = r->accepted + r->committing,
	    .out = round_out(r),
	    .deadline_s = (double)r->policy.deadline_ms / 1000,
	    .reopened = &w->stuck.reopened,
	    .status = device_status_get(jobs_uses(g).registry, facts->place),
	    .elsewhere =
		jobs_pace(g)->tasks_out > round_out(r) ? jobs_pace(g)->tasks_out - round_out(r) : 0,
	    .knows_reach = w->stuck.reach_ms > 0,
	    .reach = w->stuck.reach};
}

/* Lock held, and given away: the job is in use. */
static void
look_whom(struct engine *g, struct job *j, struct stuck_look *l)
{
	struct engine_reach reach;

	l->wanted++;
	if (l->left == 0 || (job_stuck(j)->reach_ms > l->reach_ms && job_stuck(j)->reach_ms > 0))
		return;
	l->left--;
	jobs_unlock(g);
	jobs_reach(g, j, &reach);
	jobs_lock(g);
	job_stuck(j)->reach = (struct stuck_reach){reach.devices, reach.lately, reach.suspended};
	job_stuck(j)->reach_ms = l->now_ms > 0 ? l->now_ms : 1;
}

static void
say_stuck(struct engine *g, struct job *j, enum stuck_kind was)
{
	const struct job_facts *facts = job_facts(j);
	const struct stuck *s = &job_stuck(j)->watch.said;

	if (was)
		jobs_pace(g)->stuck[was]--;
	if (s->kind)
		jobs_pace(g)->stuck[s->kind]++;
	job_stuck(j)->watch.since = clock_wall();
	if (s->kind)
		log_event(LOG_LEVEL_WARN, "job.stuck", LOG_S("job", facts->hex),
		    LOG_S("name", facts->name), LOG_S("kind", stuck_name(s->kind)),
		    LOG_S("why", s->reason), LOG_S("advice", stuck_advice(s->kind)));
	else
		log_event(LOG_LEVEL_INFO, "job.moves", LOG_S("job", facts->hex),
		    LOG_S("name", facts->name), LOG_S("was", stuck_name(was)));
}

/* Lock held, and given away now and then: the job is in use. */
static void
look_stuck(struct engine *g, struct job *j, struct stuck_look *l)
{
	struct stuck_facts f = facts_of(g, j, l);

	if (stuck_wants_reach(&f)) {
		look_whom(g, j, l);
		f = facts_of(g, j, l);
	} else {
		job_stuck(j)->reach_ms = 0;
	}
	const enum stuck_kind was = job_stuck(j)->watch.said.kind;
	if (states_job_lives(job_facts(j)->state) &&
	    stuck_watch_step(&job_stuck(j)->watch, &f, l->now_ms))
		say_stuck(g, j, was);
}

void
rounds_note_reopened(struct job *j)
{
	const struct job_facts *facts = job_facts(j);
	struct job_stuck *w = job_stuck(j);
	size_t count;
	const struct invite *items = invites_items(j, &count);
	const struct invite *silent[ENGINE_DEVICES_SHOWN];
	uint32_t tasks[STUCK_KINDS] = {0};

	w->silent_count = invites_first_out(j, silent, ENGINE_DEVICES_SHOWN);
	for (size_t i = 0; i < w->silent_count; i++)
		memcpy(w->silent[i], silent[i]->device, 32);
	w->silent_round = facts->row.round;
	for (size_t i = 0; i < count; i++) {
		const struct invite *v = &items[i];
		const enum roster_state state = v->place.state;
		const bool given_back = state == ROSTER_ABORTED || state == ROSTER_STOPPED;
		if (given_back)
			tasks[stuck_of_abort(v->gave_up)]++;
		tasks[STUCK_TOO_SLOW] += state == ROSTER_OUT;
	}
	stuck_reopen(&w->reopened, facts->row.round, facts->round.accepted, tasks);
}

void
rounds_look_stuck(struct engine *g, uint64_t now_ms)
{
	struct stuck_look l = {.now_ms = now_ms, .left = REACHES};
	struct share_walk walk = {.seen = 0};
	struct job *j;

	jobs_lock(g);
	if (now_ms < jobs_pace(g)->stuck_ms) {
		jobs_unlock(g);
		return;
	}
	uint64_t age = jobs_pace(g)->reach_wanted * LOOK_MS / REACHES;
	age = age > REACH_MS ? age : REACH_MS;
	l.reach_ms = now_ms > age ? now_ms - age : 0;
	if (health_reason(jobs_uses(g).health))
		health_report(jobs_uses(g).health, &l.health);
	jobs_pace(g)->stuck_ms = now_ms + LOOK_MS;
	/* One that is passed over, or seen twice, is seen again in a second. */
	while ((j = jobs_share_next(g, &walk))) {
		if (!job_facts(j)->work)
			continue;
		jobs_read_begin(j);
		l.tasks += job_facts(j)->state == JOB_RUNNING ? round_out(&job_facts(j)->round) : 0;
		look_stuck(g, j, &l);
		jobs_read_end(g, j);
	}
	jobs_pace(g)->reach_wanted = l.wanted;
	jobs_pace(g)->tasks_out = l.tasks;
	jobs_unlock(g);
}

void
rounds_stuck(struct engine *g, uint64_t out[STUCK_KINDS])
{
	jobs_lock(g);
	memcpy(out, jobs_pace(g)->stuck, sizeof(jobs_pace(g)->stuck));
	jobs_unlock(g);
}
