#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator_inside.h"
#include "fold_round.h"
#include "late.h"
#include "metric.h"
#include "num.h"

static enum err
read_vector(void *reports, unsigned vector, size_t delta, uint64_t first, size_t count, float *out)
{
	const struct simulate_reports *in = reports;
	const struct fleet_task *t = in->tasks[delta];
	struct codec_memory memory = {t->payload, t->len};
	const struct codec_source source = {codec_memory_read, &memory};

	return vectors_read(&t->vectors, vector, &source, first, count, out);
}

/* Base and state are copied first: a round that fails leaves them. */
static enum err
copy_base(struct simulate_coordinator *c, struct server_step *s)
{
	size_t floats = (size_t)server_step_floats(s);

	c->state_floats = floats;
	s->data = malloc((size_t)c->table.bytes);
	s->state = floats ? malloc(floats * sizeof(float)) : NULL;
	if (!s->data || (floats && !s->state))
		return ERR_NOMEM;
	memcpy(s->data, c->base->base.data, (size_t)c->table.bytes);
	if (floats && !c->base->state)
		return server_step_start(s, s->state, NULL);
	if (floats)
		memcpy(s->state, c->base->state, floats * sizeof(float));
	return ERR_OK;
}

static enum err
run(struct simulate_coordinator *c, struct fold_round *r, struct why *why)
{
	enum err e = fold_round_plan(r, why);

	if (!e)
		e = copy_base(c, &r->step);
	if (!e)
		e = fold_round_begin(r, why);
	return e ? e : fold_round_run(r);
}

/* What the manifests say. */
static enum err
collect(struct fold_round *r, const struct simulate_reports *in, struct simulate_round *out)
{
	struct metric_training *said = calloc(in->count + 1, sizeof(*said));
	struct metric_figures figures;
	enum err e = said ? ERR_OK : ERR_NOMEM;

	for (size_t i = 0; i < in->count && !e; i++) {
		const struct fleet_task *t = in->tasks[i];
		double weight = (double)t->examples, scale;
		late_apply(&r->job->aggregate.staleness, out->number - t->round, &weight, &scale);
		e = fold_round_add(r, weight, num_single(t->normaliser), scale);
		said[i] = (struct metric_training){.examples = t->examples,
		    .steps = t->steps_done,
		    .partial = t->partial,
		    .loss = num_single(t->loss),
		    .accuracy = num_single(t->accuracy),
		    .says = t->trained};
	}
	if (!e)
		e = metric_training_figures(&figures, r->job, said, in->count);
	free(said);
	if (e)
		return e;
	out->train_loss = figures.loss;
	out->train_accuracy = figures.accuracy;
	return ERR_OK;
}

/* *made is the new model; NULL if it is not finite. */
static enum err
fold(struct simulate_coordinator *c, struct simulate_round *out, struct simulate_reports in,
    struct simulate_model **made, struct why *why)
{
	const struct job_spec *job = c->setup.job;
	struct scale scale = c->schedule.scale;
	struct fold_round r = {.job = job,
	    .table = &c->table,
	    .number = out->number,
	    .factor = scale_next(&scale, &job->aggregate.scale, in.count),
	    .threads = c->setup.threads,
	    .read = read_vector,
	    .context = &in};
	bool kept = false;

	enum err e = collect(&r, &in, out);
	if (!e && in.no_numbers == 0)
		e = run(c, &r, why);
	if (!e && in.no_numbers == 0) {
		const struct simulate_model_parts parts = {
		    out->number, c->base->base.id, r.step.data, r.step.state};
		out->norm = r.norm;
		kept = true;
		e = simulate_model_new(made, c, &parts, why);
	}
	if (!kept) {
		free(r.step.data);
		free(r.step.state);
	}
	fold_round_deinit(&r);
	return e == ERR_NUMERIC ? ERR_OK : e;
}

static struct simulate_model *
find(const struct simulate_coordinator *c, const uint8_t id[32])
{
	for (size_t i = 0; i < c->kept_count; i++)
		if (memcmp(c->kept[i]->base.id, id, 32) == 0)
			return c->kept[i];
	return NULL;
}

/* As the job's guard says, from this model or from another. */
static enum err
turn(struct simulate_coordinator *c, struct simulate_round *out, struct simulate_model *m,
    struct why *why)
{
	const struct schedule_round r = {.round = out->number,
	    .reports = out->reports,
	    .failed = out->failed,
	    .base = out->base,
	    .model = out->model,
	    .state = out->model,
	    .evaluated = out->evaluated,
	    .loss = out->loss,
	    .accuracy = out->accuracy,
	    .own = out->own,
	    .measured = out->measured,
	    .measured_base = out->measured_base};

	rate_control_step(&c->schedule, c->setup.job, &r, &out->turn);
	enum err e = simulate_model_keep(c, m);
	if (e)
		return e;
	struct simulate_model *next = out->turn.back ? find(c, out->turn.base) : m;
	if (!next)
		return err_set(
		    why, ERR_STATE, "the model that the guard goes back to is not there");
	simulate_model_take(next);
	simulate_model_drop(c->base);
	c->base = next;
	return ERR_OK;
}

static void
begin(const struct simulate_coordinator *c, struct simulate_round *out,
    const struct simulate_reports *in)
{
	out->reports = in->count;
	out->norm = out->train_loss = out->train_accuracy = NAN;
	out->loss = out->accuracy = out->own = out->backdoor = NAN;
	memcpy(out->base, c->base->base.id, 32);
	memcpy(out->model, c->base->base.id, 32);
}

enum err
simulate_coordinator_fold(struct simulate_coordinator *c, struct simulate_round *out,
    const struct simulate_reports *in, struct why *why)
{
	struct simulate_model *made = NULL;

	begin(c, out, in);
	if (!c->setup.train)
		return ERR_OK;
	enum err e = fold(c, out, *in, &made, why);
	out->failed = !made;
	if (made)
		memcpy(out->model, made->base.id, 32);
	if (!e)
		e = simulate_coordinator_devices(
		    c, out, in, c->setup.job->round.mode == ROUND_MODE_BUFFERED, why);
	if (!e && made)
		e = simulate_coordinator_evaluate(c, made, out, why);
	if (!e)
		e = turn(c, out, made ? made : c->base, why);
	simulate_model_drop(made);
	return e;
}

enum err
simulate_coordinator_measure(struct simulate_coordinator *c, struct simulate_round *out,
    const struct simulate_reports *in, struct why *why)
{
	begin(c, out, in);
	return simulate_coordinator_devices(c, out, in, false, why);
}
