#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fault.h"
#include "histogram.h"
#include "job_needs.h"
#include "log.h"
#include "models.h"
#include "rate_control_rows.h"
#include "report.h"
#include "rounds_inside.h"
#include "wake.h"

/* What follows a round that was folded: planned with it, and taken over after the commit. */

/* The base is another file than the one just written, and must still be good: a person is told now, not the devices later. */
static enum err
find_base(struct models *models, struct engine_outcome *o, struct why *why)
{
	struct models_map *map = NULL;
	struct why said = {""};

	o->next_bytes = o->model_bytes;
	if (!o->turn.back)
		return ERR_OK;
	enum err e = models_get(models, o->turn.base, &map, &said);
	if (!e)
		e = models_state_check(models, o->turn.state, &said);
	if (map)
		o->next_bytes = map->bytes;
	models_map_release(map);
	return e ? err_set(why, e, "what the guard goes back to: %.180s",
		       said.text[0] ? said.text : err_name(e))
		 : ERR_OK;
}

/* Who made the base that a buffer has measured. Where no guard goes back, nothing is known but its round's number. */
static uint64_t
maker(const struct engine_fold *f, const struct store_round *r)
{
	const struct late_base *b = late_bases_find(&f->schedule.bases, r->measured);

	if (r->measured == r->round)
		return f->schedule.base_round;
	return b ? b->maker : r->measured - 1;
}

/* Devices, and what they report under names of their own, measure the base; the coordinator and a program measure the new model. */
static struct best_point
measured(const struct engine_fold *f, const struct engine_outcome *o)
{
	const struct store_round *r = &o->row;
	const struct monitor_spec *m = &f->spec->monitor;
	bool own = m->metric == MONITOR_OWN;
	bool base = job_measures_base(f->spec, own);
	struct best_point p = {.value = own ? r->eval_own
		: !r->evaluate.known	    ? (double)NAN
		: m->metric == MONITOR_LOSS ? r->evaluate.loss
					    : r->evaluate.accuracy,
	    .round = base || r->state == OUTCOME_FAILED ? f->schedule.base_round : r->round};

	memcpy(p.model, base ? r->base : r->model, 32);
	if (base && r->measured > 0) {
		p.round = maker(f, r);
		memcpy(p.model, o->measured_base, 32);
	}
	return p;
}

static void
guard_evaluated(const struct engine_fold *f, struct engine_outcome *o)
{
	const struct best_point p = measured(f, o);

	o->schedule = f->schedule;
	o->best = f->best;
	o->best_changed = best_step(&o->best, &f->spec->monitor, f->spec->keep.best, &p);
}

static enum err
guard_plan(
    struct models *models, const struct engine_fold *f, struct engine_outcome *o, struct why *why)
{
	const struct rate_control_turn *t = &o->turn;
	const struct best_point p = measured(f, o);

	o->schedule = f->schedule;
	o->best = f->best;
	o->best_changed = best_step(&o->best, &f->spec->monitor, f->spec->keep.best, &p);
	rate_control_rows_step(&o->schedule, f->spec, &o->row, o->measured_base, &o->turn);
	if (t->reason[0] && !o->row.reason[0])
		snprintf(o->row.reason, sizeof(o->row.reason), "%s", t->reason);
	return find_base(models, o, why);
}

static bool
has_evaluators(struct engine *g, const struct job *j)
{
	jobs_lock(g);
	bool has = invites_evaluates(j);
	jobs_unlock(g);
	return has;
}

/* The job ends with what it had: the row of an open evaluation says why it is made. */
static void
plan_evaluated(const struct engine_fold *f, struct engine_outcome *o)
{
	const struct after_evaluation v = {.reason = f->row.reason,
	    .reports = (uint32_t)o->row.reports,
	    .quorum = f->quorum,
	    .known = o->row.evaluate.known};

	guard_evaluated(f, o);
	o->turn = (struct rate_control_turn){.verdict = GUARD_CALM, .round = o->row.round - 1};
	memcpy(o->turn.base, o->row.base, 32);
	after_evaluated(&o->after, &v, o->row.reason);
}

static void
open_next(const struct engine_fold *f, struct engine_outcome *o)
{
	job_open_row(&o->next, f->job, o->row.round + 1, o->turn.base);
	if (o->after.begin_next) {
		memcpy(o->next.optimizer_state, o->turn.state, 32);
		return;
	}
	o->next.state = OUTCOME_EVALUATING;
	memcpy(o->next.reason, o->after.job_reason, sizeof(o->after.job_reason));
}

enum err
rounds_plan(
    struct engine *g, const struct engine_fold *f, struct engine_outcome *o, struct why *why)
{
	if (o->row.state == OUTCOME_EVALUATED) {
		plan_evaluated(f, o);
		return ERR_OK;
	}
	bool finite = o->row.state == OUTCOME_COMMITTED;
	const struct after_round ended = {.limit = f->limit,
	    .committed = finite,
	    .has_evaluators = has_evaluators(g, f->job),
	    .actions = rounds_foresee(g, f->job, finite ? ROUND_FOLDED : ROUND_NOT_FINITE),
	    .evaluated = o->row.evaluate.known,
	    .loss = o->row.evaluate.loss,
	    .accuracy = o->row.evaluate.accuracy,
	    .own = o->row.eval_own,
	    .turn = &o->turn};

	enum err e = guard_plan(jobs_uses(g).models, f, o, why);
	if (e)
		return e;
	after_decide(&o->after, f->spec, &ended);
	if (o->after.begin_next || o->after.begin_evaluation)
		open_next(f, o);
	return ERR_OK;
}

static void
log_round(const struct engine_fold *f, const struct engine_outcome *o)
{
	const struct store_metric *evaluate = &o->row.evaluate;

	log_event(LOG_LEVEL_INFO,
	    o->row.state == OUTCOME_EVALUATED ? "round.evaluated" : "round.committed",
	    LOG_S("job", f->job_hex), LOG_U("round", o->row.round),
	    LOG_S("state", states_round_name(o->row.state)), LOG_U("reports", o->row.reports),
	    LOG_D("loss", o->row.loss), LOG_D("accuracy", o->row.accuracy),
	    LOG_D("evaluate_loss", evaluate->known ? evaluate->loss : NAN),
	    LOG_D("evaluate_accuracy", evaluate->known ? evaluate->accuracy : NAN),
	    LOG_U("bytes_up", o->row.bytes_up),
	    LOG_D("seconds", o->row.closed_at - o->row.opened_at));
}

/* Lock held. */
static void
count_round(struct engine_report *r, const struct engine_outcome *o)
{
	r->rounds_committed_total += o->row.state == OUTCOME_COMMITTED;
	r->rounds_failed_total += o->row.state == OUTCOME_FAILED;
	/* The clock may have been set back meanwhile. */
	histogram_add(&r->round_seconds, fmax(o->row.closed_at - o->row.opened_at, 0));
	histogram_add(&r->fold_seconds, o->fold_seconds);
	if (o->evaluation_seconds > 0)
		histogram_add(&r->evaluation_seconds, o->evaluation_seconds);
}

/* A stop has ended its rounds for good. Lock held. */
static void
begin_evaluation(struct engine *g, struct job *j)
{
	const struct round_policy policy = terms_policy(j, true);

	if (job_facts(j)->round.state == ROUND_ENDED)
		return;
	FAULT("round.evaluation");
	invites_clear(j);
	round_init(job_round(j), &policy, 0);
	rounds_begin_open(g, j);
}

/* The next round, or the end. Lock held. */
static void
go_on(struct engine *g, struct job *j, const struct engine_outcome *o)
{
	bool failed = o->row.state == OUTCOME_FAILED;
	unsigned act = rounds_step(g, j, failed ? ROUND_NOT_FINITE : ROUND_FOLDED, 0);
	bool over = job_facts(j)->state == JOB_STOPPED;

	if (o->after.begin_next || o->after.begin_evaluation) {
		jobs_open_next(j, &o->next, o->row.model);
	}
	/* The commit has written it already. */
	if (o->after.job_state && !over)
		jobs_note_state(g, j, o->after.job_state, o->after.job_reason);
	if (o->after.begin_evaluation) {
		begin_evaluation(g, j);
		return;
	}
	if (o->turn.verdict == GUARD_PAUSE || o->turn.verdict == GUARD_ROLLBACK_PAUSE)
		rounds_step(g, j, ROUND_PAUSE, 0);
	if (!o->after.begin_next)
		rounds_step(g, j, ROUND_STOP, 0);
	else if (act & ROUND_DO_BEGIN)
		rounds_step(g, j, ROUND_BEGIN, 0);
}

void
rounds_folded(struct engine *g, const struct engine_fold *f, const struct engine_outcome *o)
{
	log_round(f, o);
	jobs_lock(g);
	count_round(jobs_counts(g), o);
	jobs_take_result(g, f->job, f, o);
	FAULT("fold.told");
	go_on(g, f->job, o);
	jobs_unlock(g);
	FAULT("round.next");
	wake_ring(jobs_uses(g).wake);
}

void
rounds_forget_later(struct engine *g)
{
	if (jobs_pace(g)->started && !jobs_pace(g)->stopping)
		(void)!jobs_pace(g)->fold(jobs_pace(g)->folder, &(struct engine_fold){.job = NULL});
}

bool
rounds_forgotten_state(struct engine *g, uint8_t hash[32])
{
	bool found = false;
	unsigned seen = 0;

	jobs_lock(g);
	for (struct job *j = jobs_first(g); j && !found; j = jobs_next(g, j, &seen)) {
		if (states_job_lives(job_facts(j)->state))
			continue;
		found = jobs_take_state(j, hash);
		jobs_shrink(g, j);
	}
	jobs_unlock(g);
	return found;
}
