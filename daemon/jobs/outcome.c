#include <stdio.h>
#include <string.h>

#include "jobs_inside.h"
#include "log.h"

/* What its rounds come to, taken over into a job. */

void
jobs_set_owner(struct job *j, const uint8_t owner[32])
{
	memcpy(change_facts(j)->owner, owner, sizeof(j->facts.owner));
}

void
jobs_begin(struct job *j, const struct store_job *row, const struct store_round *first,
    const uint8_t model[32])
{
	change_facts(j)->row = *first;
	jobs_late_open(j, NULL);
	change_facts(j)->created_at = row->created_at;
	memcpy(change_facts(j)->model, model, sizeof(j->facts.model));
	change_facts(j)->state = row->state;
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
	change_facts(j)->best = o->best;
	if (f->spec->guard.on && o->row.evaluate.known && o->row.state != OUTCOME_EVALUATED)
		change_facts(j)->metric_round = o->schedule.metric_round;
	if (o->turn.verdict >= GUARD_STOP)
		log_guard(f, o);
}

/* What the round has made. Lock held. */
void
jobs_take_result(
    struct engine *g, struct job *j, const struct engine_fold *f, const struct engine_outcome *o)
{
	bool evaluated = o->row.state == OUTCOME_EVALUATED;

	memcpy(change_facts(j)->model, o->turn.base, 32);
	if (!evaluated)
		change_facts(j)->model_bytes = o->next_bytes;
	if (o->difference_bytes > 0)
		jobs_difference_add(j, o->row.base, o->row.model, o->difference_bytes);
	change_facts(j)->rounds_committed = o->row.round - evaluated;
	if (o->row.evaluate.known) {
		change_facts(j)->metric = o->row.evaluate;
		bool base = f->spec->recipe.evaluate_by == EVALUATE_DEVICES;
		change_facts(j)->metric_round =
		    (base && o->row.measured > 0 ? o->row.measured : o->row.round) - base;
	}
	if (o->row.evaluate.known || o->unmeasured[0])
		memcpy(j->work->unmeasured, o->unmeasured, sizeof(j->work->unmeasured));
	if (o->row.measured > 0)
		change_facts(j)->measured = o->row.measured;
	guard_apply(j, f, o);
	change_facts(j)->bytes_up = change_facts(j)->bytes_down = 0;
	if (j->pace.fold_failures > 0 && j->facts.state == JOB_RUNNING)
		change_facts(j)->reason[0] = '\0';
	j->pace.fold_failures = 0;
	if (o->row.state == OUTCOME_COMMITTED) {
		jobs_variate_count(j, o->row.round);
		change_facts(j)->reports += o->row.reports;
	}
	if (!j->facts.round.policy.buffered)
		jobs_share_end_all(g, j);
	invites_happens_all(j, ROSTER_TURN);
	j->pace.loaded = 0;
}

void
jobs_open_next(struct job *j, const struct store_round *row, const uint8_t ended[32])
{
	change_facts(j)->row = *row;
	jobs_late_open(j, ended);
}

void
jobs_count_bytes(struct job *j, uint64_t up, uint64_t down)
{
	change_facts(j)->bytes_up += up;
	change_facts(j)->bytes_down += down;
}

void
jobs_note_reports(struct job *j, uint64_t reports)
{
	change_facts(j)->reports = reports;
}

void
jobs_note_unmeasured(struct job *j, const char *why)
{
	snprintf(j->work->unmeasured, sizeof(j->work->unmeasured), "%s", why);
}
