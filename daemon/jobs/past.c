#include <stdlib.h>
#include <string.h>

#include "jobs_inside.h"
#include "past_rows.h"
#include "store.h"

/* Jobs that are over: rows that say what is shown of them; their documents are read when a device asks. */

static void
take_guard(struct job *j, const struct store_past *row)
{
	change_facts(j)->is_guarded = row->is_guarded;
	change_facts(j)->guard = (struct guard_view){.bad = (uint32_t)row->bad,
	    .rollbacks = (uint32_t)row->rollbacks,
	    .base_round = row->base_round,
	    .has_best = row->has_best,
	    .best_round = row->best_round,
	    .best_value = row->best_value};
	memcpy(change_facts(j)->guard.best_model, row->best_model, 32);
}

enum err
jobs_past_new(struct job **out, const struct store_past *row)
{
	struct job *j = job_blank(row->id);

	if (!j)
		return ERR_NOMEM;
	memcpy(change_facts(j)->owner, row->owner, 32);
	memcpy(change_facts(j)->name, row->name, sizeof(j->facts.name));
	change_facts(j)->state = row->state;
	change_facts(j)->only_evaluates = row->only_evaluates;
	memcpy(change_facts(j)->reason, row->reason, sizeof(j->facts.reason));
	change_facts(j)->priority = (int64_t)row->priority;
	change_facts(j)->created_at = row->created_at;
	change_facts(j)->ended_at = row->ended_at;
	change_facts(j)->row.round = row->round;
	memcpy(change_facts(j)->row.base, row->base, 32);
	change_facts(j)->rounds_committed = row->rounds_committed;
	memcpy(change_facts(j)->model, row->model, 32);
	change_facts(j)->model_bytes = row->model_bytes;
	change_facts(j)->parameters = row->parameters;
	change_facts(j)->metric = row->metric;
	change_facts(j)->metric_round = row->metric_round;
	take_guard(j, row);
	(void)!job_monitor_find(&change_facts(j)->monitor, row->monitor);
	change_facts(j)->monitor.rises = row->monitor_rises;
	change_facts(j)->keep = (struct keep_spec){
	    .last = (uint32_t)row->keep_last, .every = (uint32_t)row->keep_every};
	(void)round_step(&change_facts(j)->round, ROUND_STOP, 0, 0);
	*out = j;
	return ERR_OK;
}

static struct store_past
row_of(const struct job *j)
{
	const struct guard_view *g = &j->facts.guard;
	struct store_past row = {.state = j->facts.state,
	    .priority = (uint64_t)j->facts.priority,
	    .created_at = j->facts.created_at,
	    .ended_at = j->facts.ended_at,
	    .round = j->facts.row.round,
	    .rounds_committed = j->facts.rounds_committed,
	    .model_bytes = j->facts.model_bytes,
	    .parameters = j->facts.parameters,
	    .metric = j->facts.metric,
	    .metric_round = j->facts.metric_round,
	    .is_guarded = j->facts.is_guarded,
	    .has_best = g->has_best,
	    .bad = g->bad,
	    .rollbacks = g->rollbacks,
	    .base_round = g->base_round,
	    .best_round = g->best_round,
	    .best_value = g->best_value,
	    .only_evaluates = j->facts.only_evaluates,
	    .monitor_rises = j->facts.monitor.rises,
	    .keep_last = j->facts.keep.last,
	    .keep_every = j->facts.keep.every};

	job_monitor_word(row.monitor, &j->facts.monitor);
	memcpy(row.id, j->facts.id, 16);
	memcpy(row.owner, j->facts.owner, 32);
	memcpy(row.name, j->facts.name, sizeof(row.name));
	memcpy(row.reason, j->facts.reason, sizeof(row.reason));
	memcpy(row.base, j->facts.row.base, 32);
	memcpy(row.model, j->facts.model, 32);
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
	if (store_submit(jobs_uses(g).store, write_row, row_written, row))
		free(row);
}

void
jobs_shrink(struct engine *g, struct job *j)
{
	if (!j->work || j->pace.folds > 0 || j->readers > 0 || j->facts.aside ||
	    states_job_lives(j->facts.state) || jobs_names_state(j))
		return;
	change_facts(j)->guard = jobs_guard_view(j);
	job_empty(j);
	if (!j->facts.gone)
		jobs_past_note(g, j);
}

void
jobs_read_begin(struct job *j)
{
	j->users++;
	j->readers++;
}

void
jobs_read_end(struct engine *g, struct job *j)
{
	j->users--;
	j->readers--;
	jobs_shrink(g, j);
}
