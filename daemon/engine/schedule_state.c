#include <stdio.h>
#include <string.h>

#include "engine_inside.h"
#include "hex.h"
#include "log.h"
#include "models.h"
#include "schedule_rows.h"

bool
engine_schedule_blames(const struct engine_job *j, enum abort_reason reason)
{
	return j->spec.guard.on && j->spec.recipe.evaluate_by == EVALUATE_DEVICES &&
	    reason == ABORT_NOT_FINITE;
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

enum err
engine_schedule_plan(const struct services *s, const struct engine_fold *f,
    struct engine_outcome *o, struct why *why)
{
	const struct schedule_turn *t = &o->turn;

	o->schedule = f->schedule;
	schedule_rows_step(&o->schedule, f->spec, &o->row, &o->turn);
	if (t->reason[0] && !o->row.reason[0])
		snprintf(o->row.reason, sizeof(o->row.reason), "%s", t->reason);
	return find_base(s, o, why);
}

void
engine_schedule_apply(
    struct engine_job *j, const struct engine_fold *f, const struct engine_outcome *o)
{
	j->schedule = o->schedule;
	if (f->spec->guard.on && o->row.evaluate.known)
		j->metric_round = o->schedule.metric_round;
	if (o->turn.verdict >= GUARD_STOP)
		log_guard(f, o);
}

enum err
engine_schedule_load(struct store_db *db, struct engine_job *j)
{
	enum err e = schedule_rows_load(db, &j->spec, j->id, &j->schedule);

	if (!e && j->spec.guard.on && j->metric.known)
		j->metric_round = j->schedule.metric_round;
	/* Over: its model is the one that a next round would have begun with. */
	if (!e && j->spec.guard.on && j->row.state != OUTCOME_OPEN)
		memcpy(j->model, j->schedule.base, 32);
	return e;
}

/* --- what is held */

bool
engine_schedule_holds_model(const struct engine_job *j, const uint8_t model[32])
{
	const struct guard_point *best = guard_best(&j->schedule.guard);

	return states_job_lives(j->state) ? guard_holds_model(&j->schedule.guard, model)
					  : best && memcmp(best->model, model, 32) == 0;
}

bool
engine_schedule_holds_state(const struct engine_job *j, const uint8_t state[32])
{
	return guard_holds_state(&j->schedule.guard, state);
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

bool
engine_forgotten_state(struct engine *g, uint8_t hash[32])
{
	bool found = false;
	unsigned seen = 0;

	lock_take(&g->lock);
	for (struct engine_job *j = g->jobs; j && !found; j = engine_next(g, j, &seen)) {
		if (states_job_lives(j->state))
			continue;
		found = take_state(j->row.optimizer_state, hash);
		for (uint32_t i = 0; i < j->schedule.guard.count && !found; i++)
			found = take_state(j->schedule.guard.points[i].state, hash);
	}
	lock_release(&g->lock);
	return found;
}
