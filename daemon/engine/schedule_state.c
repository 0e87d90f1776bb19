#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine_inside.h"
#include "err.h"
#include "hex.h"
#include "log.h"
#include "metric_rows.h"
#include "models.h"
#include "schedule_rows.h"
#include "services.h"

bool
engine_schedule_blames(const struct engine_job *j, const struct invite *v, enum abort_reason reason)
{
	return v->round == j->row.round && j->work->spec.guard.on &&
	    j->work->spec.recipe.evaluate_by == EVALUATE_DEVICES && reason == ABORT_NOT_FINITE &&
	    !engine_evaluates(j);
}

/* --- when a round ends */

static void
log_guard(const struct engine_fold *f, const struct engine_outcome *o)
{
	log_event(LOG_LEVEL_WARN, "guard", LOG_S("job", f->job_hex), LOG_U("round", o->row.round),
	    LOG_S("why", o->turn.reason));
}

/* The base is another file than the one just written, and must still be good: a person is told now, not the devices later. */
static enum err
find_base(const struct services *s, struct engine_outcome *o, struct why *why)
{
	struct models_map *map = NULL;
	struct why said = {""};

	o->next_bytes = o->model_bytes;
	if (!o->turn.back)
		return ERR_OK;
	enum err e = models_get(s->models, o->turn.base, &map, &said);
	if (!e)
		e = models_state_check(s->models, o->turn.state, &said);
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

void
engine_schedule_evaluated(const struct engine_fold *f, struct engine_outcome *o)
{
	const struct best_point p = measured(f, o);

	o->schedule = f->schedule;
	o->best = f->best;
	o->best_changed = best_step(&o->best, &f->spec->monitor, f->spec->keep.best, &p);
}

enum err
engine_schedule_plan(const struct services *s, const struct engine_fold *f,
    struct engine_outcome *o, struct why *why)
{
	const struct schedule_turn *t = &o->turn;
	const struct best_point p = measured(f, o);

	o->schedule = f->schedule;
	o->best = f->best;
	o->best_changed = best_step(&o->best, &f->spec->monitor, f->spec->keep.best, &p);
	schedule_rows_step(&o->schedule, f->spec, &o->row, o->measured_base, &o->turn);
	if (t->reason[0] && !o->row.reason[0])
		snprintf(o->row.reason, sizeof(o->row.reason), "%s", t->reason);
	return find_base(s, o, why);
}

void
engine_schedule_apply(
    struct engine_job *j, const struct engine_fold *f, const struct engine_outcome *o)
{
	j->work->schedule = o->schedule;
	j->best = o->best;
	if (f->spec->guard.on && o->row.evaluate.known && o->row.state != OUTCOME_EVALUATED)
		j->metric_round = o->schedule.metric_round;
	if (o->turn.verdict >= GUARD_STOP)
		log_guard(f, o);
}

enum err
engine_schedule_load(struct store_db *db, struct engine_job *j)
{
	enum err e = schedule_rows_load(db, &j->work->spec, j->id, &j->work->schedule);

	if (!e)
		e = metric_rows_best(db, j->id, &j->best);
	/* A guard knows rounds alone: what was evaluated after the last is newer. */
	bool after = j->row.state == OUTCOME_EVALUATED && j->row.evaluate.known;
	if (!e && j->work->spec.guard.on && j->metric.known && !after)
		j->metric_round = j->work->schedule.metric_round;
	/* Over: its model is the one that a next round would have begun with. */
	if (!e && j->work->spec.guard.on && !states_round_is_open(j->row.state))
		memcpy(j->model, j->work->schedule.base, 32);
	return e;
}

/* --- what is held */

bool
engine_schedule_holds_model(const struct engine_job *j, const uint8_t model[32])
{
	if (best_holds(&j->best, model))
		return true;
	if (!j->work)
		return j->guard.has_best && memcmp(j->guard.best_model, model, 32) == 0;
	const struct guard *guard = &j->work->schedule.guard;
	const struct guard_point *best = guard_best(guard);
	return states_job_lives(j->state) ? schedule_state_holds_model(&j->work->schedule, model)
					  : best && memcmp(best->model, model, 32) == 0;
}

bool
engine_schedule_holds_state(const struct engine_job *j, const uint8_t state[32])
{
	return schedule_state_holds(&j->work->schedule, state);
}

bool
engine_names_state(const struct engine_job *j)
{
	static const uint8_t none[32];
	bool names = memcmp(j->row.optimizer_state, none, 32) != 0;
	const uint8_t *state;

	for (uint32_t i = 0;
	     j->work && !names && (state = schedule_state_held(&j->work->schedule, i)); i++)
		names = memcmp(state, none, 32) != 0;
	return names;
}

void
engine_schedule_drop_states(struct engine_job *j)
{
	uint8_t *state;

	memset(j->row.optimizer_state, 0, sizeof(j->row.optimizer_state));
	for (uint32_t i = 0; (state = schedule_state_held(&j->work->schedule, i)); i++)
		memset(state, 0, 32);
}

void
engine_forget_later(struct engine *g)
{
	if (g->started && !g->stopping)
		(void)!g->fold(g->folder, &(struct engine_fold){.job = NULL});
}

/* Moves one that is not zero to out. */
static bool
take_state(uint8_t state[32], uint8_t out[32])
{
	static const uint8_t none[32];

	if (memcmp(state, none, 32) == 0)
		return false;
	memcpy(out, state, 32);
	memset(state, 0, 32);
	return true;
}

static bool
take_any(struct engine_job *j, uint8_t out[32])
{
	bool found = take_state(j->row.optimizer_state, out);
	uint8_t *state;

	for (uint32_t i = 0;
	     j->work && !found && (state = schedule_state_held(&j->work->schedule, i)); i++)
		found = take_state(state, out);
	return found;
}

bool
engine_forgotten_state(struct engine *g, uint8_t hash[32])
{
	bool found = false;
	unsigned seen = 0;

	lock_take(&g->lock);
	for (struct engine_job *j = g->jobs; j && !found; j = engine_next(g, j, &seen)) {
		if (states_job_lives(j->state))
			continue;
		found = take_any(j, hash);
		engine_job_shrink(g, j);
	}
	lock_release(&g->lock);
	return found;
}
