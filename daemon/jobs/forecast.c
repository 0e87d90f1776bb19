#include <stdio.h>
#include <string.h>

#include "allowance.h"
#include "config.h"
#include "job_facts.h"
#include "job_needs.h"
#include "registry.h"

struct keep_spec
jobs_forecast_keep(const struct config *c, const struct job *j)
{
	struct keep_spec k = job_facts(j)->keep;

	if (k.last == JOB_KEEP_CONFIGURED)
		k.last = c->keep_last;
	if (k.every == JOB_KEEP_CONFIGURED)
		k.every = c->keep_every;
	return k;
}

uint64_t
jobs_forecast_kept(const struct config *c, const struct job *j, uint64_t rounds)
{
	const struct keep_spec k = jobs_forecast_keep(c, j);

	return forecast_kept(&k, job_facts(j)->model_bytes, rounds);
}

struct job_forecast
jobs_forecast(const struct config *c, const struct job *j)
{
	const struct job_facts *facts = job_facts(j);
	const struct job_work *w = facts->work;

	return forecast_job(&(struct forecast_job){.spec = &w->spec,
	    .keep = jobs_forecast_keep(c, j),
	    .elements = w->table.elements,
	    .model_bytes = facts->model_bytes,
	    .payload_bytes = sizes_payload(j),
	    .state_bytes = sizes_state(j),
	    .rounds = w->terms.stop.rounds,
	    .committed = facts->rounds_committed,
	    .accepted = facts->round.accepted,
	    .best_held = (uint32_t)facts->best.count});
}

#define NAMES_SHOWN 3

/* --- who is there */

struct look {
	struct engine *g;
	const struct job_spec *spec;
	struct engine_evaluators *out;
};

static enum err
look_at(void *ctx, const struct registry_view *v)
{
	const struct look *l = ctx;
	struct engine_evaluators *out = l->out;
	const struct device_status_ask_for what = {"", l->spec->recipe.trainer};
	struct device_status_offer offer;

	if ((v->row.state != DEVICE_ACTIVE && v->row.state != DEVICE_SUSPENDED) ||
	    strcmp(v->row.role, "device") != 0 || !jobs_evaluator(l->g, l->spec, v->row.id))
		return ERR_OK;
	if (out->devices + out->suspended == 0)
		snprintf(out->first, sizeof(out->first), "%s", v->row.name);
	out->suspended += v->row.state == DEVICE_SUSPENDED;
	out->devices += v->row.state == DEVICE_ACTIVE;
	if (device_status_heard(jobs_uses(l->g).registry, v->row.id, &what, &offer) &&
	    offer.lately) {
		out->heard++;
		out->ready += offer.evaluates;
	}
	return ERR_OK;
}

void
jobs_evaluators(struct engine *g, const struct job_spec *spec, struct engine_evaluators *out)
{
	struct look l = {g, spec, out};

	*out =
	    (struct engine_evaluators){.by_program = spec->recipe.evaluate_by == EVALUATE_PROGRAM};
	memcpy(out->trainer, spec->recipe.trainer, sizeof(out->trainer));
	if (!out->by_program)
		return;
	for (size_t i = 0; i < spec->evaluators.device_count && i < NAMES_SHOWN; i++)
		snprintf(out->wanted + strlen(out->wanted),
		    sizeof(out->wanted) - strlen(out->wanted), "%s%s", i ? ", " : "",
		    spec->evaluators.devices[i]);
	for (size_t i = 0; i < spec->evaluators.label_count && i < NAMES_SHOWN; i++)
		snprintf(out->wanted + strlen(out->wanted),
		    sizeof(out->wanted) - strlen(out->wanted), "%s%s=%s", i ? ", " : "",
		    spec->evaluators.labels[i].key, spec->evaluators.labels[i].value);
	(void)!registry_each(jobs_uses(g).registry, NULL, look_at, &l);
}

bool
jobs_evaluator_missing(char out[ENGINE_UNMEASURED_MAX], const struct engine_evaluators *e)
{
	const size_t room = ENGINE_UNMEASURED_MAX;

	if (!e->by_program || e->ready > 0)
		return false;
	if (e->devices + e->suspended == 0)
		snprintf(out, room, "no evaluator: no device that has joined is %.100s", e->wanted);
	else if (e->devices == 0)
		snprintf(out, room, "evaluator \"%.60s\" is suspended", e->first);
	else if (e->heard == 0)
		snprintf(out, room, "evaluator \"%.60s\"%s did not ask for work lately", e->first,
		    e->devices > 1 ? " and the others" : "");
	else
		snprintf(out, room,
		    "evaluator \"%.60s\" runs no program that evaluates \"%.60s\" "
		    "(rivulet.evaluations)",
		    e->first, e->trainer);
	return true;
}

struct reach {
	struct engine *g;
	const struct job *job; /* what is looked at of it does not change */
	struct engine_reach *out;
};

static enum err
reach_device(void *ctx, const struct registry_view *v)
{
	const struct reach *r = ctx;
	struct device_status_offer offer;

	if ((v->row.state != DEVICE_ACTIVE && v->row.state != DEVICE_SUSPENDED) ||
	    strcmp(v->row.role, "device") != 0 || jobs_ineligible(r->g, r->job, v->row.id))
		return ERR_OK;
	r->out->suspended += v->row.state == DEVICE_SUSPENDED;
	r->out->devices += v->row.state == DEVICE_ACTIVE;
	const struct device_status_ask_for what = {r->out->data.name, r->out->trainer};
	if (!device_status_heard(jobs_uses(r->g).registry, v->row.id, &what, &offer))
		return ERR_OK;
	r->out->heard++;
	r->out->lately += offer.lately;
	r->out->with_data += !r->out->data.name[0] ||
	    (offer.has_data &&
		allowance_examples(&job_facts(r->job)->work->spec.recipe.data, offer.examples,
		    offer.tokens) >= r->out->data.min_examples);
	r->out->with_trainer += offer.has_trainer;
	const struct recipe *recipe = &job_facts(r->job)->work->spec.recipe;
	if (offer.has_data && recipe->data.window == 0 &&
	    allowance_cuts(recipe, job_facts(r->job)->only_evaluates, offer.examples, r->out->most))
		++*(offer.draws ? &r->out->drawn : &r->out->too_many);
	r->out->without_figures += offer.lacks_figures && recipe->evaluate_by == EVALUATE_DEVICES &&
	    figure_set_any(&recipe->figures);
	return ERR_OK;
}

void
jobs_reach(struct engine *g, const struct job *j, struct engine_reach *out)
{
	const struct job_facts *facts = job_facts(j);
	struct reach r = {g, j, out};

	*out = (struct engine_reach){.round = facts->work->terms.round,
	    .most = facts->work->spec.aggregate.max_examples,
	    .data.min_examples =
		recipe_min_examples(&facts->work->spec.recipe, facts->only_evaluates)};
	memcpy(out->data.name, facts->work->spec.recipe.data.name, sizeof(out->data.name));
	memcpy(out->trainer, facts->work->spec.recipe.trainer, sizeof(out->trainer));
	jobs_evaluators(g, &facts->work->spec, &out->evaluators);
	out->warning = recipe_warning(&facts->work->spec.recipe);
	(void)!registry_each(jobs_uses(g).registry, NULL, reach_device, &r);
}
