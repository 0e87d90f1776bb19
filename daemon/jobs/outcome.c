#include <stdio.h>
#include <string.h>

#include "jobs_inside.h"
#include "log.h"

/* What its rounds come to, taken over into a job. */

void
jobs_set_owner(struct job *j, const uint8_t owner[32])
{
	memcpy(job_change(j)->owner, owner, sizeof(j->facts.owner));
}

void
jobs_begin(struct job *j, const struct store_job *row, const struct store_round *first,
    const uint8_t model[32])
{
	job_change(j)->row = *first;
	jobs_late_open(j, NULL);
	job_change(j)->created_at = row->created_at;
	memcpy(job_change(j)->model, model, sizeof(j->facts.model));
	job_change(j)->state = row->state;
}

static void
log_guard(const struct engine_fold *f, const struct engine_outcome *o)
{
	log_event(LOG_LEVEL_WARN, "guard", LOG_S("job", f->job_hex), LOG_U("round", o->row.round),
	    LOG_S("why", o->turn.reason));
}

static void
guard_apply(struct job *j, const struct engine_fold *f, const struct engine_outcome *o)
{
	j->work->schedule = o->schedule;
	job_change(j)->best = o->best;
	if (f->spec->guard.on && o->row.evaluate.known && o->row.state != OUTCOME_EVALUATED)
		job_change(j)->metric_round = o->schedule.metric_round;
	if (o->turn.verdict >= GUARD_STOP)
		log_guard(f, o);
}

/* What the round has made. Lock held. */
void
jobs_take_result(
    struct engine *g, struct job *j, const struct engine_fold *f, const struct engine_outcome *o)
{
	bool evaluated = o->row.state == OUTCOME_EVALUATED;

	memcpy(job_change(j)->model, o->turn.base, 32);
	if (!evaluated)
		job_change(j)->model_bytes = o->next_bytes;
	if (o->difference_bytes > 0)
		jobs_difference_add(j, o->row.base, o->row.model, o->difference_bytes);
	job_change(j)->rounds_committed = o->row.round - evaluated;
	if (o->row.evaluate.known) {
		job_change(j)->metric = o->row.evaluate;
		bool base = f->spec->recipe.evaluate_by == EVALUATE_DEVICES;
		job_change(j)->metric_round =
		    (base && o->row.measured > 0 ? o->row.measured : o->row.round) - base;
	}
	if (o->row.evaluate.known || o->unmeasured[0])
		memcpy(j->work->unmeasured, o->unmeasured, sizeof(j->work->unmeasured));
	if (o->row.measured > 0)
		job_change(j)->measured = o->row.measured;
	guard_apply(j, f, o);
	job_change(j)->bytes_up = job_change(j)->bytes_down = 0;
	if (j->pace.fold_failures > 0 && j->facts.state == JOB_RUNNING)
		job_change(j)->reason[0] = '\0';
	j->pace.fold_failures = 0;
	if (o->row.state == OUTCOME_COMMITTED) {
		jobs_variate_count(j, o->row.round);
		job_change(j)->reports += o->row.reports;
	}
	if (!j->facts.round.policy.buffered)
		jobs_share_end_all(g, j);
	invites_happens_all(j, ROSTER_TURN);
	j->pace.loaded = 0;
}

void
jobs_open_next(struct job *j, const struct store_round *row, const uint8_t ended[32])
{
	job_change(j)->row = *row;
	jobs_late_open(j, ended);
}

void
jobs_count_bytes(struct job *j, uint64_t up, uint64_t down)
{
	job_change(j)->bytes_up += up;
	job_change(j)->bytes_down += down;
}

void
jobs_note_reports(struct job *j, uint64_t reports)
{
	job_change(j)->reports = reports;
}

void
jobs_note_unmeasured(struct job *j, const char *why)
{
	snprintf(j->work->unmeasured, sizeof(j->work->unmeasured), "%s", why);
}
