#include <string.h>

#include "budget.h"
#include "config.h"
#include "cpu.h"
#include "engine_inside.h"
#include "evalset.h"
#include "services.h"
#include "shared.h"

struct keep_spec
engine_forecast_keep(const struct config *c, const struct engine_job *j)
{
	struct keep_spec k = j->keep;

	if (k.last == JOB_KEEP_CONFIGURED)
		k.last = c->keep_last;
	if (k.every == JOB_KEEP_CONFIGURED)
		k.every = c->keep_every;
	return k;
}

uint64_t
engine_forecast_kept(const struct config *c, const struct engine_job *j, uint64_t rounds)
{
	const struct keep_spec k = engine_forecast_keep(c, j);

	return forecast_kept(&k, j->model_bytes, rounds);
}

struct job_forecast
engine_forecast(const struct config *c, const struct engine_job *j)
{
	const struct engine_work *w = j->work;

	return forecast_job(&(struct forecast_job){.spec = &w->spec,
	    .keep = engine_forecast_keep(c, j),
	    .elements = w->table.elements,
	    .model_bytes = j->model_bytes,
	    .payload_bytes = engine_variate_payload(j),
	    .state_bytes = engine_variate_state_bytes(j),
	    .rounds = w->terms.stop.rounds,
	    .committed = j->rounds_committed,
	    .accepted = j->round.accepted,
	    .best_held = (uint32_t)j->best.count});
}

void
engine_forecast_new(struct engine *g, const struct engine_job *j, struct engine_trial *out)
{
	const struct config *c = shared_take(g->services->config);

	memcpy(out->job.id, j->id, sizeof(out->job.id));
	memcpy(out->job.name, j->name, sizeof(out->job.name));
	out->job.model_bytes = j->model_bytes;
	out->job.parameters = j->parameters;
	out->job.forecast = engine_forecast(c, j);
	shared_give(g->services->config, c);
	engine_reach_of(g, j, &out->reach);
}

void
engine_cost_note(struct engine_work *w)
{
	const struct job_spec *spec = &w->spec;

	w->cost =
	    fold_cost(&spec->aggregate, &spec->download, &w->table, spec->round.goal, cpu_count());
	if (spec->recipe.evaluate_by == EVALUATE_COORDINATOR)
		w->cost.bytes += evalset_net_bytes(&spec->recipe);
}

enum err
engine_cost_check(const struct services *s, const struct engine_work *w, struct why *why)
{
	const struct config *c = shared_take(s->config);
	const uint64_t work = c->fold_work,
		       bytes = budget_large(budget_all(s->budget, c->work_bytes));

	shared_give(s->config, c);
	if (w->spec.only_evaluates)
		return ERR_OK;
	if (work > 0 && w->cost.work > (double)work)
		return err_set(why, ERR_LIMIT,
		    "folding a round takes %.3g operations, and the coordinator's [limits] "
		    "fold_work is %.3g: a smaller model, fewer reports or another rule take less",
		    w->cost.work, (double)work);
	if (w->cost.bytes > bytes)
		return err_set(why, ERR_LIMIT,
		    "folding a round takes %llu bytes of memory; the coordinator's [limits] "
		    "work_bytes allow %llu: ask its administrator",
		    (unsigned long long)w->cost.bytes, (unsigned long long)bytes);
	return ERR_OK;
}
