#include "view.h"

#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "engine.h"
#include "engine_inside.h"

/* Copying, under the lock: no allocation, and nothing that grows. */

static struct open_view
view_open(const struct engine_job *j, uint64_t now_ms)
{
	return (struct open_view){
	    .state = round_state_name(&j->round),
	    .reports = j->round.accepted,
	    .invited = j->round.invited,
	    .goal = j->spec.round.goal,
	    .quorum = j->spec.round.quorum,
	    .reopened = j->round.reopened,
	    .up_bytes = j->bytes_up,
	    .opened_at_seconds = j->row.opened_at,
	    .deadline_seconds = ((double)j->round.deadline_ms - (double)now_ms) / 1000,
	};
}

static struct guard_view
view_guard(const struct engine_job *j)
{
	const struct guard *g = &j->schedule.guard;
	const struct guard_point *best = guard_best(g);
	struct guard_view v = {
	    .bad = g->bad, .rollbacks = g->rollbacks, .base_round = j->schedule.base_round};

	if (!best)
		return v;
	v.has_best = true;
	v.best_round = best->round;
	v.best_value = best->value;
	memcpy(v.best_model, best->model, sizeof(v.best_model));
	return v;
}

static void
view_job(struct engine *g, const struct engine_job *j, struct job_view *v)
{
	*v = (struct job_view){
	    .state = j->state,
	    .priority = j->spec.priority,
	    .round = j->row.round,
	    .rounds_committed = j->rounds_committed,
	    .model_bytes = j->model_bytes,
	    .parameters = j->table.elements,
	    .metric = j->metric,
	    .metric_round = j->metric_round,
	    .created_at_seconds = j->created_at,
	    .is_open = j->round.state != ROUND_ENDED,
	    .is_guarded = j->spec.guard.on,
	};
	memcpy(v->id, j->id, sizeof(v->id));
	memcpy(v->owner, j->owner, sizeof(v->owner));
	memcpy(v->model, j->model, sizeof(v->model));
	memcpy(v->name, j->spec.name, sizeof(v->name));
	memcpy(v->reason, j->reason, sizeof(v->reason));
	if (v->is_open) {
		v->open = view_open(j, clock_ms());
		const struct config *c = shared_take(g->services->config);
		v->forecast = engine_forecast(c, j);
		shared_give(g->services->config, c);
	}
	if (v->is_guarded)
		v->guard = view_guard(j);
}

static bool
may_see(struct engine *g, const struct engine_job *j, const uint8_t *device)
{
	return !device || !engine_ineligible(g, j, device);
}

bool
engine_jobs(struct engine *g, struct engine_slice *s)
{
	size_t looked = 0;

	s->count = 0;
	lock_take(&g->lock);
	struct engine_job *j = s->last ? s->last->next : g->jobs;
	for (; j && looked < ENGINE_SLICE; j = j->next) {
		if (may_see(g, j, s->device))
			view_job(g, j, &s->jobs[s->count++]);
		s->last = j;
		looked++;
	}
	lock_release(&g->lock);
	return looked > 0;
}

bool
engine_job(struct engine *g, const uint8_t id[16], const uint8_t *device, struct job_view *out)
{
	lock_take(&g->lock);
	const struct engine_job *j = engine_find(g, id);
	bool seen = j && may_see(g, j, device);
	if (seen)
		view_job(g, j, out);
	lock_release(&g->lock);
	return seen;
}

void
engine_fill_open(struct engine *g, struct store_round *r)
{
	lock_take(&g->lock);
	const struct engine_job *j = engine_find(g, r->job);
	if (j && j->row.round == r->round && j->round.state != ROUND_ENDED) {
		r->reports = j->round.accepted;
		r->invited = j->round.invited;
		r->aborted = j->round.aborted;
		r->reopened = j->round.reopened;
		r->bytes_up = j->bytes_up;
		r->bytes_down = j->bytes_down;
	}
	lock_release(&g->lock);
}

bool
engine_may_read(struct engine *g, const uint8_t device[32], const uint8_t model[32])
{
	bool may = false;
	unsigned seen = 0;

	lock_take(&g->lock);
	for (struct engine_job *j = g->jobs; j && !may; j = engine_next(g, j, &seen))
		may = (memcmp(j->row.base, model, 32) == 0 || memcmp(j->model, model, 32) == 0) &&
		    !engine_ineligible(g, j, device);
	lock_release(&g->lock);
	return may;
}

bool
engine_may_work(struct engine *g, const uint8_t device[32], const uint8_t job[16])
{
	lock_take(&g->lock);
	const struct engine_job *j = engine_find(g, job);
	bool may = j && !engine_ineligible(g, j, device);
	lock_release(&g->lock);
	return may;
}
