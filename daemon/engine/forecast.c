#include <string.h>

#include "engine_inside.h"

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
