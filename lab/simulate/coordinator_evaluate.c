#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
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

/* In the place of a program that no simulation has stands the set of --test, if there is one and the network is known. */
bool
simulate_coordinator_has_test(const struct simulate_coordinator *c)
{
	const struct recipe *r = &c->setup.job->recipe;

	return c->setup.measure &&
	    (r->evaluate_by == EVALUATE_COORDINATOR ||
		(r->evaluate_by == EVALUATE_PROGRAM && c->setup.test && r->net.layer_count > 0));
}

enum err
simulate_coordinator_evaluate(struct simulate_coordinator *c, const struct simulate_model *m,
    struct simulate_round *out, struct why *why)
{
	struct train_score s;
	float *room;

	if (!simulate_coordinator_has_test(c) ||
	    !job_measures(c->setup.job, out->number, out->last))
		return ERR_OK;
	const float *params = arranged(c, m, &room);
	enum err e = params ? score(c, params, &c->test, &s, why) : ERR_NOMEM;
	if (!e && (s.weight > 0 || s.labels > 0)) {
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

/* --- by devices */

/* What a delta's device says of the base that it started from: of as many examples as it trained on, at most. */
static struct simulate_answer
answer_of(const struct job_spec *job, const struct fleet_task *t)
{
	uint64_t n = t->measured_examples < t->examples ? t->measured_examples : t->examples;
	struct simulate_answer a = {
	    .round = t->round, .device = t->device, .examples = (double)t->examples, .own = t->own};

	if (t->has_measured)
		a.report = (struct metric_report){.weight = (double)n,
		    .loss = t->measured_loss,
		    .accuracy = t->measured_accuracy,
		    .most = metric_evaluated_most(job, n),
		    .says = t->evaluated};
	memcpy(a.base, t->base->id, 32);
	return a;
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
		all[count++] =
		    (struct metric_report){.weight = weight, .loss = NAN, .accuracy = NAN};
	return count;
}

static enum err
figure(const struct job_spec *job, struct simulate_round *out, const struct simulate_answer *all,
    size_t count, uint32_t no_numbers)
{
	struct metric_report *reports = calloc(count + no_numbers + 1, sizeof(*reports));
	struct metric_value *own = calloc(count + 1, sizeof(*own));
	size_t n = 0, owned = 0;
	struct metric m = {.known = false};
	enum err e = reports && own ? ERR_OK : ERR_NOMEM;

	for (size_t i = 0; !e && i < count; i++) {
		if (isfinite(all[i].own))
			own[owned++] = (struct metric_value){all[i].examples, all[i].own};
		if (all[i].report.weight > 0) {
			out->evaluated_examples += (uint64_t)all[i].report.weight;
			reports[n++] = all[i].report;
		}
	}
	if (!e && job->monitor.metric == MONITOR_OWN && job_measures_base(job, true))
		out->own = metric_own(job, own, owned);
	if (!e && job->recipe.evaluate_by == EVALUATE_DEVICES)
		e = metric_of(&m, job, reports, add_silent(reports, n, no_numbers));
	if (!e && m.known) {
		out->evaluated = true;
		out->loss = m.loss;
		out->accuracy = m.accuracy;
	}
	free(reports);
	free(own);
	return e;
}

/* --- of buffers */

static enum err
remember(struct simulate_coordinator *c, const struct simulate_reports *in)
{
	for (size_t i = 0; i < in->count; i++) {
		void *grown =
		    bytes_grow(c->answers, c->answer_count, &c->answer_room, sizeof(*c->answers));
		if (!grown)
			return ERR_NOMEM;
		c->answers = grown;
		c->answers[c->answer_count++] = answer_of(c->setup.job, in->tasks[i]);
	}
	return ERR_OK;
}

static uint64_t
choose(const struct simulate_coordinator *c, struct late_answers *all)
{
	size_t count = 0;

	for (size_t i = 0; i < c->answer_count; i++) {
		size_t at = 0;
		while (at < count && all[at].round != c->answers[i].round)
			at++;
		if (at == count)
			all[count++] = (struct late_answers){c->answers[i].round, 0};
		all[at].count++;
	}
	return late_measured(all, count, c->measured, c->quorum);
}

/* Those of no use any more go: of bases before the one that is measured, and of tasks that are too old. */
static void
forget(struct simulate_coordinator *c, uint64_t round)
{
	const uint64_t oldest = c->setup.job->round.max_staleness;
	size_t kept = 0;

	for (size_t i = 0; i < c->answer_count; i++)
		if (c->answers[i].round > c->measured && c->answers[i].round + oldest > round)
			c->answers[kept++] = c->answers[i];
	c->answer_count = kept;
}

static int
compare_answers(const void *a, const void *b)
{
	const struct simulate_answer *x = a, *y = b;

	return (x->device > y->device) - (x->device < y->device);
}

/* The answers of the round that was chosen, in the order of devices, in whatever rounds they came. ERR_NOMEM. */
static enum err
measure_base(struct simulate_coordinator *c, struct simulate_round *out, uint32_t no_numbers)
{
	struct simulate_answer *of = calloc(c->answer_count + 1, sizeof(*of));
	size_t n = 0;

	if (!of)
		return ERR_NOMEM;
	memcpy(out->measured_base, out->base, 32);
	for (size_t i = 0; i < c->answer_count; i++)
		if (c->answers[i].round == out->measured)
			of[n++] = c->answers[i];
	qsort(of, n, sizeof(*of), compare_answers);
	if (n > 0)
		memcpy(out->measured_base, of[0].base, 32);
	enum err e = figure(c->setup.job, out, of, n, no_numbers);
	free(of);
	return e;
}

static enum err
buffer(
    struct simulate_coordinator *c, struct simulate_round *out, const struct simulate_reports *in)
{
	enum err e = remember(c, in);
	struct late_answers *all = calloc(c->answer_count + 1, sizeof(*all));

	if (!e && !all)
		e = ERR_NOMEM;
	if (!e)
		out->measured = in->no_numbers > 0 ? out->number : choose(c, all);
	free(all);
	if (!e && out->measured > 0) {
		e = measure_base(c, out, in->no_numbers);
		c->measured = out->measured;
	}
	forget(c, out->number);
	return e;
}

static enum err
at_once(const struct simulate_coordinator *c, struct simulate_round *out,
    const struct simulate_reports *in)
{
	struct simulate_answer *all = calloc(in->count + 1, sizeof(*all));

	if (!all)
		return ERR_NOMEM;
	for (size_t i = 0; i < in->count; i++)
		all[i] = answer_of(c->setup.job, in->tasks[i]);
	enum err e = figure(c->setup.job, out, all, in->count, in->no_numbers);
	free(all);
	return e;
}

enum err
simulate_coordinator_devices(struct simulate_coordinator *c, struct simulate_round *out,
    const struct simulate_reports *in, bool buffered, struct why *why)
{
	const struct job_spec *job = c->setup.job;

	if (!job_measures_base(job, job->monitor.metric == MONITOR_OWN))
		return ERR_OK;
	enum err e = buffered ? buffer(c, out, in) : at_once(c, out, in);
	return e ? err_set(why, e, "no memory for the devices' figures") : ERR_OK;
}
