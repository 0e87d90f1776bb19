#include "view.h"

#include <math.h>
#include <string.h>

#include "clock.h"
#include "engine_inside.h"
#include "registry.h"
#include "services.h"
#include "shared.h"

/* Copying, under the lock: no allocation, and nothing that grows. */

static struct open_view
view_open(const struct job *j, uint64_t now_ms)
{
	return (struct open_view){
	    .state = j->work->central.open ? "evaluating" : round_state_name(&j->round),
	    .is_central = j->work->central.open,
	    .evaluates = job_evaluates(j),
	    .reports = j->round.accepted,
	    .invited = j->round.invited,
	    .goal = j->work->terms.round.goal,
	    .quorum = j->work->terms.round.quorum,
	    .reopened = j->round.reopened,
	    .mode = j->work->spec.round.mode,
	    .early = j->round.next_accepted,
	    .concurrency = j->work->terms.round.concurrency,
	    .max_staleness = j->work->spec.round.max_staleness,
	    .up_bytes = j->bytes_up,
	    .opened_at_seconds = j->row.opened_at,
	    .deadline_seconds = ((double)(j->work->central.open ? j->work->central.until_ms
								: j->round.deadline_ms) -
				    (double)now_ms) /
		1000,
	};
}

static void
view_job(struct engine *g, const struct job *j, const uint8_t *device, struct job_view *v)
{
	bool is_open = j->work && j->round.state != ROUND_ENDED;

	*v = (struct job_view){
	    .for_device = device != NULL,
	    .state = j->state,
	    .only_evaluates = j->only_evaluates,
	    .priority = j->work ? j->member.priority : j->priority,
	    .share = j->work ? j->member.share : 0,
	    .round = j->row.round,
	    .rounds_committed = j->rounds_committed,
	    .model_bytes = j->model_bytes,
	    .parameters = j->parameters,
	    .metric = j->metric,
	    .metric_round = j->metric_round,
	    .created_at_seconds = j->created_at,
	    .ended_at_seconds = j->ended_at,
	    .is_open = is_open,
	    .is_guarded = j->is_guarded,
	};
	memcpy(v->id, j->id, sizeof(v->id));
	memcpy(v->owner, j->owner, sizeof(v->owner));
	memcpy(v->model, j->model, sizeof(v->model));
	memcpy(v->name, j->name, sizeof(v->name));
	if (!device) {
		registry_owner_name(g->services->registry, j->owner, v->owner_name);
		v->standing = standing_get(g->services->registry, j->place);
	}
	if (!device && j->work) {
		v->stuck = j->work->stuck.said;
		v->stuck_since = j->work->stuck.since;
	}
	memcpy(v->reason, j->reason, sizeof(v->reason));
	if (is_open) {
		v->open = view_open(j, clock_ms());
		const struct config *c = shared_take(g->services->config);
		v->forecast = jobs_forecast(c, j);
		shared_give(g->services->config, c);
	}
	v->monitor = j->monitor;
	v->has_best = j->best.count > 0;
	if (v->has_best)
		v->best = j->best.points[0];
	if (v->is_guarded)
		v->guard = j->work ? jobs_guard_view(j) : j->guard;
}

/* A list for a device has what may still give it work: to say more of the others, each document would have to be read. */
static bool
is_listed(struct engine *g, const struct job *j, const uint8_t *device)
{
	return !j->gone && (!device || (states_job_lives(j->state) && jobs_concerns(g, j, device)));
}

/* Was it looked at already? */
static bool
is_before(const struct job *j, const struct engine_slice *s)
{
	if (!s->begun || j->priority < s->priority)
		return false;
	return j->priority > s->priority || j->serial <= s->serial;
}

/* Where the walk goes on. The job that it came to is mostly there still: of many jobs none is passed by again. Lock held. */
static struct job *
behind(struct engine *g, const struct engine_slice *s)
{
	struct job *j = s->begun ? jobs_find(g, s->id) : NULL;

	if (j)
		return j->next;
	for (j = g->jobs; j && is_before(j, s);)
		j = j->next;
	return j;
}

bool
engine_jobs(struct engine *g, struct engine_slice *s)
{
	s->count = s->looked = 0;
	lock_take(&g->lock);
	struct job *j = behind(g, s);
	for (; j && s->looked < ENGINE_SLICE; j = j->next) {
		if (is_listed(g, j, s->device))
			view_job(g, j, s->device, &s->jobs[s->count++]);
		s->begun = true;
		s->priority = j->priority;
		s->serial = j->serial;
		memcpy(s->id, j->id, sizeof(s->id));
		s->looked++;
	}
	lock_release(&g->lock);
	return s->looked > 0;
}

bool
engine_job(struct engine *g, const uint8_t id[16], const uint8_t *device, struct job_view *out)
{
	lock_take(&g->lock);
	const struct job *j = jobs_find(g, id);
	bool is_past = j && device && !j->work;
	bool seen = j && (is_past || !device || jobs_concerns(g, j, device));
	if (seen)
		view_job(g, j, device, out);
	out->read_bytes = 0;
	lock_release(&g->lock);
	return is_past ? jobs_past_selects(g, id, device, &out->read_bytes) : seen;
}

bool
engine_reach(struct engine *g, const uint8_t id[16], struct engine_reach *out)
{
	lock_take(&g->lock);
	struct job *j = jobs_find(g, id);
	bool lives = j && states_job_lives(j->state);
	if (lives) {
		j->users++;
		j->readers++;
	}
	lock_release(&g->lock);
	if (!lives)
		return false;
	jobs_reach(g, j, out);
	lock_take(&g->lock);
	j->users--;
	j->readers--;
	jobs_shrink(g, j);
	lock_release(&g->lock);
	return true;
}

/* --- who works on a round */

static void
list_works(const struct job *j, uint64_t now_ms, struct engine_hands *out)
{
	for (size_t i = 0; i < j->invite_count && out->working < ENGINE_DEVICES_SHOWN; i++) {
		const struct invite *v = &j->invites[i];
		if (v->state != INVITE_OUT)
			continue;
		memcpy(out->works[out->working].device, v->device, 32);
		out->works[out->working++].seconds =
		    v->given_ms > 0 ? (double)(now_ms - v->given_ms) / 1000 : NAN;
	}
}

static void
list_silent(const struct job *j, struct engine_hands *out)
{
	const struct engine_work *w = j->work;

	for (size_t i = 0; w->silent_round == j->row.round && i < w->silent_count; i++) {
		const struct invite *v = roster_find(j, w->silent[i]);
		if (!v || v->state == INVITE_OUT)
			memcpy(out->silents[out->silent++], w->silent[i], 32);
	}
}

void
engine_hands(struct engine *g, const uint8_t job[16], struct engine_hands *out)
{
	*out = (struct engine_hands){.working = 0};
	lock_take(&g->lock);
	const struct job *j = jobs_find(g, job);
	if (j && j->work && j->round.state != ROUND_ENDED) {
		list_works(j, clock_ms(), out);
		list_silent(j, out);
	}
	lock_release(&g->lock);
}

void
engine_fill_open(struct engine *g, struct store_round *r)
{
	lock_take(&g->lock);
	const struct job *j = jobs_find(g, r->job);
	if (j && j->row.round == r->round && j->round.state != ROUND_ENDED) {
		r->reports = j->round.accepted;
		r->invited = j->round.invited;
		r->aborted = j->round.aborted;
		r->reopened = j->round.reopened;
		r->goal = j->round.policy.goal;
		r->bytes_up = j->bytes_up;
		r->bytes_down = j->bytes_down;
	}
	lock_release(&g->lock);
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
	if (j->work)
		return roster_has(j, device) || jobs_concerns(g, j, device);
	if (!j->gone && past->count < PAST_MAX)
		memcpy(past->ids[past->count++], j->id, 16);
	return false;
}

bool
engine_may_read(struct engine *g, const uint8_t device[32], const uint8_t model[32], uint64_t *read)
{
	struct past_jobs past = {.count = 0};
	bool may = false;
	unsigned seen = 0;

	lock_take(&g->lock);
	for (struct job *j = g->jobs; j && !may; j = jobs_next(g, j, &seen))
		if (memcmp(j->row.base, model, 32) == 0 || memcmp(j->model, model, 32) == 0 ||
		    jobs_late_reads(j, model))
			may = may_read(g, j, device, &past);
		else
			may = jobs_evaluator_reads(g, j, device, model);
	lock_release(&g->lock);
	for (size_t i = 0; i < past.count && !may; i++)
		may = jobs_past_selects(g, past.ids[i], device, read);
	return may;
}

bool
engine_may_work(struct engine *g, const uint8_t device[32], const uint8_t job[16], uint64_t *read)
{
	lock_take(&g->lock);
	const struct job *j = jobs_find(g, job);
	bool is_past = j && !j->work;
	bool may = j && jobs_concerns(g, j, device);
	lock_release(&g->lock);
	return is_past ? jobs_past_selects(g, job, device, read) : may;
}

void
engine_report(struct engine *g, struct engine_report *out)
{
	lock_take(&g->lock);
	*out = g->report;
	lock_report(&g->lock, &out->lock);
	lock_release(&g->lock);
}

bool
engine_variate_may_read(struct engine *g, const uint8_t device[32], const uint8_t hash[32])
{
	bool may = false;
	unsigned seen = 0;

	lock_take(&g->lock);
	for (struct job *j = g->jobs; j && !may; j = jobs_next(g, j, &seen))
		may = j->members && memcmp(j->row.optimizer_state, hash, 32) == 0 &&
		    (roster_has(j, device) || !jobs_ineligible(g, j, device));
	lock_release(&g->lock);
	return may;
}

bool
engine_variate_holds(struct engine *g, const uint8_t device[32])
{
	bool holds = false;
	unsigned seen = 0;

	lock_take(&g->lock);
	for (struct job *j = g->jobs; j && !holds; j = jobs_next(g, j, &seen))
		holds = jobs_variate_counts(j, device);
	lock_release(&g->lock);
	return holds;
}
