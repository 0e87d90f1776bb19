#include <string.h>

#include "jobs_inside.h"
#include "metric_rows.h"
#include "rate_control_rows.h"

bool
jobs_guard_blames(const struct job *j, const struct invite *v, enum abort_reason reason)
{
	return v->place.round == j->facts.row.round && j->work->spec.guard.on &&
	    j->work->spec.recipe.evaluate_by == EVALUATE_DEVICES && reason == ABORT_NOT_FINITE &&
	    !job_evaluates(j);
}

enum err
jobs_guard_load(struct store_db *db, struct job *j)
{
	enum err e = rate_control_rows_load(db, &j->work->spec, j->facts.id, &j->work->schedule);

	if (!e)
		e = metric_rows_best(db, j->facts.id, &change_facts(j)->best);
	/* A guard knows rounds alone: what was evaluated after the last is newer. */
	bool after = j->facts.row.state == OUTCOME_EVALUATED && j->facts.row.evaluate.known;
	if (!e && j->work->spec.guard.on && j->facts.metric.known && !after)
		change_facts(j)->metric_round = j->work->schedule.metric_round;
	/* Over: its model is the one that a next round would have begun with. */
	if (!e && j->work->spec.guard.on && !states_round_is_open(j->facts.row.state))
		memcpy(change_facts(j)->model, j->work->schedule.base, 32);
	return e;
}

/* --- what is held */

bool
jobs_guard_holds_model(const struct job *j, const uint8_t model[32])
{
	if (best_holds(&j->facts.best, model))
		return true;
	if (!j->work)
		return j->facts.guard.has_best && memcmp(j->facts.guard.best_model, model, 32) == 0;
	const struct guard *guard = &j->work->schedule.guard;
	const struct guard_point *best = guard_best(guard);
	return states_job_lives(j->facts.state)
	    ? rate_control_holds_model(&j->work->schedule, model)
	    : best && memcmp(best->model, model, 32) == 0;
}

bool
jobs_guard_holds_state(const struct job *j, const uint8_t state[32])
{
	return rate_control_holds(&j->work->schedule, state);
}

bool
jobs_names_state(const struct job *j)
{
	static const uint8_t none[32];
	bool names = memcmp(j->facts.row.optimizer_state, none, 32) != 0;
	const uint8_t *state;

	for (uint32_t i = 0;
	     j->work && !names && (state = rate_control_held(&j->work->schedule, i)); i++)
		names = memcmp(state, none, 32) != 0;
	return names;
}

void
jobs_drop_states(struct job *j)
{
	uint8_t *state;

	memset(change_facts(j)->row.optimizer_state, 0, sizeof(j->facts.row.optimizer_state));
	for (uint32_t i = 0; (state = rate_control_held(&j->work->schedule, i)); i++)
		memset(state, 0, 32);
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
jobs_take_state(struct job *j, uint8_t out[32])
{
	bool found = take_state(change_facts(j)->row.optimizer_state, out);
	uint8_t *state;

	for (uint32_t i = 0;
	     j->work && !found && (state = rate_control_held(&j->work->schedule, i)); i++)
		found = take_state(state, out);
	return found;
}

struct guard_view
jobs_guard_view(const struct job *j)
{
	const struct guard *g = &j->work->schedule.guard;
	const struct guard_point *best = guard_best(g);
	struct guard_view v = {
	    .bad = g->bad, .rollbacks = g->rollbacks, .base_round = j->work->schedule.base_round};

	if (!best)
		return v;
	v.has_best = true;
	v.best_round = best->round;
	v.best_value = best->value;
	memcpy(v.best_model, best->model, sizeof(v.best_model));
	return v;
}
