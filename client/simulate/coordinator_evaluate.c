#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator_inside.h"
#include "measure.h"
#include "metric.h"

/* The parameters in the network's order; *room is to be freed. */
static const float *
arranged(const struct simulate_coordinator *c, const struct simulate_model *m, float **room)
{
	*room = NULL;
	if (tensor_table_same(&c->net, &c->table))
		return (const float *)(const void *)m->base.data;
	*room = malloc((size_t)c->net.bytes);
	if (*room)
		modelfile_arrange(*room, &c->net, m->base.data, &c->table);
	return *room;
}

static enum err
score(const struct simulate_coordinator *c, const float *params, const struct dataset *set,
    struct train_score *out, struct why *why)
{
	const struct train_measure w = {.recipe = &c->setup.job->recipe,
	    .params = params,
	    .set = set,
	    .threads = c->setup.threads};

	return train_measure_run(&w, out, why);
}

enum err
simulate_coordinator_evaluate(struct simulate_coordinator *c, const struct simulate_model *m,
    struct simulate_round *out, struct why *why)
{
	struct train_score s;
	float *room;

	if (!c->setup.measure || c->setup.job->recipe.evaluate_by != EVALUATE_COORDINATOR ||
	    !job_measures(c->setup.job, out->number, out->last))
		return ERR_OK;
	const float *params = arranged(c, m, &room);
	enum err e = params ? score(c, params, &c->test, &s, why) : ERR_NOMEM;
	if (!e) {
		out->evaluated = true;
		out->evaluated_examples = s.examples;
		out->loss = s.loss;
		out->accuracy = s.accuracy;
	}
	if (!e && c->triggered.count > 0 && isfinite(out->loss)) {
		e = score(c, params, &c->triggered, &s, why);
		out->backdoor = s.accuracy;
	}
	free(room);
	return e;
}

/* Of as many examples as it trained on, at most. */
static struct metric_report
measured(const struct fleet_task *t)
{
	uint64_t n = t->measured_examples < t->examples ? t->measured_examples : t->examples;

	return (struct metric_report){(double)n, t->measured_loss, t->measured_accuracy};
}

/* Who gave up because the base gave no numbers has measured it, too, on as much as the others. */
static size_t
add_silent(struct metric_report *all, size_t count, uint32_t none)
{
	double weight = 0;

	for (size_t i = 0; i < count; i++)
		weight += all[i].weight;
	weight = count > 0 ? weight / (double)count : 1;
	for (uint32_t i = 0; i < none; i++)
		all[count++] = (struct metric_report){weight, NAN, NAN};
	return count;
}

enum err
simulate_coordinator_devices(struct simulate_coordinator *c, struct simulate_round *out,
    const struct simulate_reports *in, struct why *why)
{
	const struct job_spec *job = c->setup.job;
	struct metric_report *reports = calloc(in->count + in->no_numbers + 1, sizeof(*reports));
	struct metric_value *own = calloc(in->count + 1, sizeof(*own));
	size_t n = 0, owned = 0;
	struct metric m = {.known = false};
	enum err e = reports && own ? ERR_OK : ERR_NOMEM;

	for (size_t i = 0; !e && i < in->count; i++) {
		const struct fleet_task *t = in->tasks[i];
		if (isfinite(t->own))
			own[owned++] = (struct metric_value){(double)t->examples, t->own};
		if (t->has_measured && measured(t).weight > 0) {
			out->evaluated_examples += (uint64_t)measured(t).weight;
			reports[n++] = measured(t);
		}
	}
	if (!e && job->monitor.metric == MONITOR_OWN)
		out->own = metric_own(job, own, owned);
	if (!e && job->recipe.evaluate_by == EVALUATE_DEVICES)
		e = metric_of(&m, job, reports, add_silent(reports, n, in->no_numbers));
	if (!e && m.known) {
		out->evaluated = true;
		out->loss = m.loss;
		out->accuracy = m.accuracy;
	}
	free(reports);
	free(own);
	return e ? err_set(why, e, "no memory for the devices' figures") : ERR_OK;
}
