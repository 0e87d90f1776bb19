#include <stdlib.h>
#include <string.h>

#include "job_struct.h"
#include "past_rows.h"
#include "services.h"
#include "store.h"

/* Jobs that are over: rows that say what is shown of them; their documents are read when a device asks. */

static void
take_guard(struct job *j, const struct store_past *row)
{
	j->is_guarded = row->is_guarded;
	j->guard = (struct guard_view){.bad = (uint32_t)row->bad,
	    .rollbacks = (uint32_t)row->rollbacks,
	    .base_round = row->base_round,
	    .has_best = row->has_best,
	    .best_round = row->best_round,
	    .best_value = row->best_value};
	memcpy(j->guard.best_model, row->best_model, 32);
}

enum err
jobs_past_new(struct job **out, const struct store_past *row)
{
	struct job *j = job_blank(row->id);

	if (!j)
		return ERR_NOMEM;
	memcpy(j->owner, row->owner, 32);
	memcpy(j->name, row->name, sizeof(j->name));
	j->state = row->state;
	j->only_evaluates = row->only_evaluates;
	memcpy(j->reason, row->reason, sizeof(j->reason));
	j->priority = (int64_t)row->priority;
	j->created_at = row->created_at;
	j->ended_at = row->ended_at;
	j->row.round = row->round;
	memcpy(j->row.base, row->base, 32);
	j->rounds_committed = row->rounds_committed;
	memcpy(j->model, row->model, 32);
	j->model_bytes = row->model_bytes;
	j->parameters = row->parameters;
	j->metric = row->metric;
	j->metric_round = row->metric_round;
	take_guard(j, row);
	(void)!job_monitor_find(&j->monitor, row->monitor);
	j->monitor.rises = row->monitor_rises;
	j->keep = (struct keep_spec){
	    .last = (uint32_t)row->keep_last, .every = (uint32_t)row->keep_every};
	(void)round_step(&j->round, ROUND_STOP, 0, 0);
	*out = j;
	return ERR_OK;
}

static struct store_past
row_of(const struct job *j)
{
	const struct guard_view *g = &j->guard;
	struct store_past row = {.state = j->state,
	    .priority = (uint64_t)j->priority,
	    .created_at = j->created_at,
	    .ended_at = j->ended_at,
	    .round = j->row.round,
	    .rounds_committed = j->rounds_committed,
	    .model_bytes = j->model_bytes,
	    .parameters = j->parameters,
	    .metric = j->metric,
	    .metric_round = j->metric_round,
	    .is_guarded = j->is_guarded,
	    .has_best = g->has_best,
	    .bad = g->bad,
	    .rollbacks = g->rollbacks,
	    .base_round = g->base_round,
	    .best_round = g->best_round,
	    .best_value = g->best_value,
	    .only_evaluates = j->only_evaluates,
	    .monitor_rises = j->monitor.rises,
	    .keep_last = j->keep.last,
	    .keep_every = j->keep.every};

	job_monitor_word(row.monitor, &j->monitor);
	memcpy(row.id, j->id, 16);
	memcpy(row.owner, j->owner, 32);
	memcpy(row.name, j->name, sizeof(row.name));
	memcpy(row.reason, j->reason, sizeof(row.reason));
	memcpy(row.base, j->row.base, 32);
	memcpy(row.model, j->model, 32);
	memcpy(row.best_model, g->best_model, 32);
	return row;
}

static enum err
write_row(struct store_db *db, void *arg, struct why *why)
{
	(void)why;
	return store_past_put(db, arg);
}

/* Without it the next start reads the job's document, and tries again. */
static void
row_written(void *arg, enum err e, const struct why *why)
{
	(void)e;
	(void)why;
	free(arg);
}

void
jobs_past_note(struct engine *g, const struct job *j)
{
	struct store_past *row = malloc(sizeof(*row));

	if (!row)
		return;
	*row = row_of(j);
	if (store_submit(g->services->store, write_row, row_written, row))
		free(row);
}

void
jobs_shrink(struct engine *g, struct job *j)
{
	if (!j->work || j->folds > 0 || j->readers > 0 || j->aside || states_job_lives(j->state) ||
	    jobs_names_state(j))
		return;
	j->guard = jobs_guard_view(j);
	job_empty(j);
	if (!j->gone)
		jobs_past_note(g, j);
}
