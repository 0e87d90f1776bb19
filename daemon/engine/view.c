#include "view.h"

#include <math.h>
#include <string.h>

#include "clock.h"
#include "engine_inside.h"
#include "registry.h"
#include "shared.h"

/* Copying, under the lock: no allocation, and nothing that grows. */

static struct open_view
view_open(const struct job *j, uint64_t now_ms)
{
	const struct job_facts *facts = job_facts(j);

	return (struct open_view){
	    .state = facts->work->central.open ? "evaluating" : round_state_name(&facts->round),
	    .is_central = facts->work->central.open,
	    .evaluates = job_evaluates(j),
	    .reports = facts->round.accepted,
	    .invited = facts->round.invited,
	    .goal = facts->work->terms.round.goal,
	    .quorum = facts->work->terms.round.quorum,
	    .reopened = facts->round.reopened,
	    .mode = facts->work->spec.round.mode,
	    .early = facts->round.next_accepted,
	    .concurrency = facts->work->terms.round.concurrency,
	    .max_staleness = facts->work->spec.round.max_staleness,
	    .up_bytes = facts->bytes_up,
	    .opened_at_seconds = facts->row.opened_at,
	    .deadline_seconds = ((double)(facts->work->central.open ? facts->work->central.until_ms
								    : facts->round.deadline_ms) -
				    (double)now_ms) /
		1000,
	};
}

static void
view_job(struct engine *g, const struct job *j, const uint8_t *device, struct job_view *v)
{
	const struct job_facts *facts = job_facts(j);
	bool is_open = facts->work && facts->round.state != ROUND_ENDED;

	*v = (struct job_view){
	    .for_device = device != NULL,
	    .state = facts->state,
	    .only_evaluates = facts->only_evaluates,
	    .priority = facts->work ? jobs_share_priority(j) : facts->priority,
	    .share = facts->work ? facts->work->terms.share : 0,
	    .round = facts->row.round,
	    .rounds_committed = facts->rounds_committed,
	    .model_bytes = facts->model_bytes,
	    .parameters = facts->parameters,
	    .metric = facts->metric,
	    .metric_round = facts->metric_round,
	    .created_at_seconds = facts->created_at,
	    .ended_at_seconds = facts->ended_at,
	    .is_open = is_open,
	    .is_guarded = facts->is_guarded,
	};
	memcpy(v->id, facts->id, sizeof(v->id));
	memcpy(v->owner, facts->owner, sizeof(v->owner));
	memcpy(v->model, facts->model, sizeof(v->model));
	memcpy(v->name, facts->name, sizeof(v->name));
	if (!device) {
		registry_owner_name(jobs_uses(g).registry, facts->owner, v->owner_name);
		v->status = device_status_get(jobs_uses(g).registry, facts->place);
	}
	if (!device && facts->work) {
		v->stuck = facts->work->stuck.watch.said;
		v->stuck_since = facts->work->stuck.watch.since;
	}
	memcpy(v->reason, facts->reason, sizeof(v->reason));
	if (is_open) {
		v->open = view_open(j, clock_ms());
		const struct config *c = shared_take(jobs_uses(g).config);
		v->forecast = jobs_forecast(c, j);
		shared_give(jobs_uses(g).config, c);
	}
	v->monitor = facts->monitor;
	v->has_best = facts->best.count > 0;
	if (v->has_best)
		v->best = facts->best.points[0];
	if (v->is_guarded)
		v->guard = facts->work ? jobs_guard_view(j) : facts->guard;
}

/* A list for a device has what may still give it work: to say more of the others, each document would have to be read. */
static bool
is_listed(struct engine *g, const struct job *j, const struct engine_slice *s)
{
	const struct job_facts *facts = job_facts(j);
	const bool lives = states_job_lives(facts->state);

	return !facts->gone && (!s->device || (lives && jobs_concerns(g, j, s->device))) &&
	    (lives || s->ended_after == 0 || facts->ended_at > s->ended_after);
}

/* Was it looked at already? */
static bool
is_before(const struct job *j, const struct engine_slice *s)
{
	const struct job_facts *facts = job_facts(j);

	if (!s->begun || facts->priority < s->priority)
		return false;
	return facts->priority > s->priority || facts->serial <= s->serial;
}

/* Where the walk goes on. The job that it came to is mostly there still: of many jobs none is passed by again. Lock held. */
static struct job *
behind(struct engine *g, const struct engine_slice *s)
{
	struct job *j = s->begun ? jobs_find(g, s->id) : NULL;

	if (j)
		return jobs_after(j);
	for (j = jobs_first(g); j && is_before(j, s);)
		j = jobs_after(j);
	return j;
}

bool
engine_jobs(struct engine *g, struct engine_slice *s)
{
	s->count = s->looked = 0;
	jobs_lock(g);
	struct job *j = behind(g, s);
	for (; j && s->looked < ENGINE_SLICE; j = jobs_after(j)) {
		if (is_listed(g, j, s))
			view_job(g, j, s->device, &s->jobs[s->count++]);
		s->begun = true;
		s->priority = job_facts(j)->priority;
		s->serial = job_facts(j)->serial;
		memcpy(s->id, job_facts(j)->id, sizeof(s->id));
		s->looked++;
	}
	jobs_unlock(g);
	return s->looked > 0;
}

bool
engine_job(struct engine *g, const uint8_t id[16], const uint8_t *device, struct job_view *out)
{
	jobs_lock(g);
	const struct job *j = jobs_find(g, id);
	bool is_past = j && device && !job_facts(j)->work;
	bool seen = j && (is_past || !device || jobs_concerns(g, j, device));
	if (seen)
		view_job(g, j, device, out);
	out->read_bytes = 0;
	jobs_unlock(g);
	return is_past ? jobs_past_selects(g, id, device, &out->read_bytes) : seen;
}

bool
engine_reach(struct engine *g, const uint8_t id[16], struct engine_reach *out)
{
	jobs_lock(g);
	struct job *j = jobs_find(g, id);
	bool lives = j && states_job_lives(job_facts(j)->state);
	if (lives) {
		jobs_read_begin(j);
	}
	jobs_unlock(g);
	if (!lives)
		return false;
	jobs_reach(g, j, out);
	jobs_lock(g);
	jobs_read_end(g, j);
	jobs_unlock(g);
	return true;
}

/* --- who works on a round */

static void
list_works(const struct job *j, uint64_t now_ms, struct engine_hands *out)
{
	const struct invite *first[ENGINE_DEVICES_SHOWN];

	out->working = invites_first_out(j, first, ENGINE_DEVICES_SHOWN);
	for (size_t i = 0; i < out->working; i++) {
		memcpy(out->works[i].device, first[i]->device, 32);
		out->works[i].seconds =
		    first[i]->given_ms > 0 ? (double)(now_ms - first[i]->given_ms) / 1000 : NAN;
	}
}

static void
list_silent(const struct job *j, struct engine_hands *out)
{
	const struct job_stuck *w = &job_facts(j)->work->stuck;

	for (size_t i = 0; w->silent_round == job_facts(j)->row.round && i < w->silent_count; i++) {
		const struct invite *v = invites_find(j, w->silent[i]);
		if (!v || v->place.state == ROSTER_OUT)
			memcpy(out->silents[out->silent++], w->silent[i], 32);
	}
}

void
engine_hands(struct engine *g, const uint8_t job[16], struct engine_hands *out)
{
	*out = (struct engine_hands){.working = 0};
	jobs_lock(g);
	const struct job *j = jobs_find(g, job);
	if (j && job_facts(j)->work && job_facts(j)->round.state != ROUND_ENDED) {
		list_works(j, clock_ms(), out);
		list_silent(j, out);
	}
	jobs_unlock(g);
}

void
engine_fill_open(struct engine *g, struct store_round *r)
{
	jobs_lock(g);
	const struct job *j = jobs_find(g, r->job);
	if (j && job_facts(j)->row.round == r->round && job_facts(j)->round.state != ROUND_ENDED) {
		r->reports = job_facts(j)->round.accepted;
		r->invited = job_facts(j)->round.invited;
		r->aborted = job_facts(j)->round.aborted;
		r->reopened = job_facts(j)->round.reopened;
		r->goal = job_facts(j)->round.policy.goal;
		r->bytes_up = job_facts(j)->bytes_up;
		r->bytes_down = job_facts(j)->bytes_down;
	}
	jobs_unlock(g);
}

/* Jobs that are over and start from or end in one model. */
#define PAST_MAX 16
struct past_jobs {
	uint8_t ids[PAST_MAX][16];
	size_t count;
};

/* Lock held. */
static bool
may_read(struct engine *g, const struct job *j, const uint8_t device[32], struct past_jobs *past)
{
	const struct job_facts *facts = job_facts(j);

	if (facts->work)
		return invites_has(j, device) || jobs_concerns(g, j, device);
	if (!facts->gone && past->count < PAST_MAX)
		memcpy(past->ids[past->count++], facts->id, 16);
	return false;
}

bool
engine_may_read(struct engine *g, const uint8_t device[32], const uint8_t model[32], uint64_t *read)
{
	struct past_jobs past = {.count = 0};
	bool may = false;
	unsigned seen = 0;

	jobs_lock(g);
	for (struct job *j = jobs_first(g); j && !may; j = jobs_next(g, j, &seen))
		if (memcmp(job_facts(j)->row.base, model, 32) == 0 ||
		    memcmp(job_facts(j)->model, model, 32) == 0 || jobs_late_reads(j, model))
			may = may_read(g, j, device, &past);
		else
			may = jobs_evaluator_reads(g, j, device, model);
	jobs_unlock(g);
	for (size_t i = 0; i < past.count && !may; i++)
		may = jobs_past_selects(g, past.ids[i], device, read);
	return may;
}

bool
engine_may_work(struct engine *g, const uint8_t device[32], const uint8_t job[16], uint64_t *read)
{
	jobs_lock(g);
	const struct job *j = jobs_find(g, job);
	bool is_past = j && !job_facts(j)->work;
	bool may = j && jobs_concerns(g, j, device);
	jobs_unlock(g);
	return is_past ? jobs_past_selects(g, job, device, read) : may;
}

bool
engine_variate_may_read(struct engine *g, const uint8_t device[32], const uint8_t hash[32])
{
	bool may = false;
	unsigned seen = 0;

	jobs_lock(g);
	for (struct job *j = jobs_first(g); j && !may; j = jobs_next(g, j, &seen))
		may = job_facts(j)->work && job_facts(j)->work->spec.aggregate.variates > 0 &&
		    memcmp(job_facts(j)->row.optimizer_state, hash, 32) == 0 &&
		    (invites_has(j, device) || !jobs_ineligible(g, j, device));
	jobs_unlock(g);
	return may;
}

bool
engine_variate_holds(struct engine *g, const uint8_t device[32])
{
	bool holds = false;
	unsigned seen = 0;

	jobs_lock(g);
	for (struct job *j = jobs_first(g); j && !holds; j = jobs_next(g, j, &seen))
		holds = jobs_variate_counts(j, device);
	jobs_unlock(g);
	return holds;
}
