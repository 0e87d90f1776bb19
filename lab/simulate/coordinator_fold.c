#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator_inside.h"
#include "fold_round.h"
#include "late.h"
#include "metric.h"
#include "num.h"
#include "worker.h"

struct folding {
	struct fold_tile tile;
	const struct simulate_reports *in;
	double *weights, *normalisers, *scales, *squares;
	enum err *results; /* of each tile or strip */
};

static enum err
read_vector(void *context, unsigned which, size_t delta, uint64_t first, size_t count, float *out)
{
	const struct folding *f = context;
	const struct fleet_task *t = f->in->tasks[delta];
	struct codec_memory memory = {t->payload, t->len};
	const struct codec_source source = {codec_memory_read, &memory};

	return vectors_read(&t->vectors, which, &source, first, count, out);
}

static enum err
read_tile(void *context, size_t delta, uint64_t first, size_t count, float *out)
{
	return read_vector(context, 0, delta, first, count, out);
}

static enum err
read_change(void *context, size_t delta, uint64_t first, size_t count, float *out)
{
	return read_vector(context, 1, delta, first, count, out);
}

static void
run_strip(void *arg, unsigned i)
{
	struct folding *f = arg;

	f->results[i] = fold_sum_measure(&f->tile.sum, i);
}

static void
run_tile(void *arg, unsigned i)
{
	struct folding *f = arg;

	f->results[i] = fold_tile_run(&f->tile, i, &f->squares[i]);
}

static enum err
in_parallel(struct folding *f, unsigned threads, unsigned n, void (*fn)(void *, unsigned))
{
	enum err e = ERR_OK;

	f->results = calloc(n + 1, sizeof(*f->results));
	if (!f->results)
		return ERR_NOMEM;
	worker_parallel(threads, n, fn, f);
	for (unsigned i = 0; i < n && !e; i++)
		e = f->results[i];
	free(f->results);
	return e;
}

static enum err
run(const struct simulate_coordinator *c, struct folding *f, double *norm, struct why *why)
{
	struct fold_tile *t = &f->tile;
	unsigned tiles = (unsigned)fold_tile_count(t), threads = c->setup.threads;

	enum err e = fold_tile_begin(t, why);
	while (!e && fold_sum_measures(&t->sum) > 0) {
		e = in_parallel(f, threads, fold_sum_measures(&t->sum), run_strip);
		if (!e)
			e = fold_sum_plan(&t->sum);
	}
	f->squares = calloc(tiles + 1, sizeof(double));
	if (!e && !f->squares)
		e = ERR_NOMEM;
	if (!e)
		e = in_parallel(f, threads, tiles, run_tile);
	if (!e)
		*norm = fold_tile_norm(f->squares, tiles);
	fold_sum_end(&t->sum);
	return e;
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
	if (floats && c->base->state)
		memcpy(s->state, c->base->state, floats * sizeof(float));
	else if (floats)
		server_step_start(s, s->state);
	return ERR_OK;
}

static enum err
prepare(struct simulate_coordinator *c, struct folding *f, uint64_t round, struct why *why)
{
	const struct job_spec *job = c->setup.job;
	struct fold_tile *t = &f->tile;
	struct scale scale = c->schedule.scale;

	t->step.table = &c->table;
	t->sum.normalisers = f->normalisers;
	t->sum.scales = job->round.max_staleness > 0 ? f->scales : NULL;
	enum err e = fold_tile_choose(t, &job->aggregate, round, why);
	if (!e)
		e = server_step_download(&t->step, &job->download, job->seed, round, why);
	if (e)
		return e;
	server_step_scale(&t->step, scale_next(&scale, &job->aggregate.scale, f->in->count));
	t->sum.deltas = (struct rule_input){.read_tile = read_tile,
	    .context = f,
	    .deltas = f->in->count,
	    .weights = f->weights,
	    .seed = fold_sum_seed(job->seed, round)};
	t->sum.changes = t->sum.deltas;
	t->sum.changes.read_tile = read_change;
	return copy_base(c, &t->step);
}

/* What the manifests say. */
static enum err
collect(const struct simulate_coordinator *c, struct folding *f, struct simulate_round *out)
{
	struct metric_training *said = calloc(f->in->count + 1, sizeof(*said));
	struct metric_figures figures;

	f->weights = calloc(f->in->count + 1, sizeof(*f->weights));
	f->normalisers = calloc(f->in->count + 1, sizeof(*f->normalisers));
	f->scales = calloc(f->in->count + 1, sizeof(*f->scales));
	if (!f->weights || !f->normalisers || !f->scales || !said) {
		free(said);
		return ERR_NOMEM;
	}
	for (size_t i = 0; i < f->in->count; i++) {
		const struct fleet_task *t = f->in->tasks[i];
		f->normalisers[i] = num_single(t->normaliser);
		f->weights[i] = (double)t->examples;
		late_apply(&c->setup.job->aggregate.staleness, out->number - t->round,
		    &f->weights[i], &f->scales[i]);
		said[i] = (struct metric_training){.examples = t->examples,
		    .steps = t->steps_done,
		    .partial = t->partial,
		    .loss = num_single(t->loss),
		    .accuracy = num_single(t->accuracy),
		    .says = t->trained};
	}
	enum err e = metric_training_figures(&figures, c->setup.job, said, f->in->count);
	free(said);
	out->train_loss = figures.loss;
	out->train_accuracy = figures.accuracy;
	return e;
}

/* *made is the new model; NULL if it is not finite. */
static enum err
fold(struct simulate_coordinator *c, struct simulate_round *out, const struct simulate_reports *in,
    struct simulate_model **made, struct why *why)
{
	struct folding f = {.in = in};
	bool kept = false;

	enum err e = collect(c, &f, out);
	if (!e && in->no_numbers == 0)
		e = prepare(c, &f, out->number, why);
	if (!e && in->no_numbers == 0)
		e = run(c, &f, &out->norm, why);
	if (!e && in->no_numbers == 0) {
		const struct simulate_model_parts parts = {
		    out->number, c->base->base.id, f.tile.step.data, f.tile.step.state};
		kept = true;
		e = simulate_model_new(made, c, &parts, why);
	}
	if (!kept) {
		free(f.tile.step.data);
		free(f.tile.step.state);
	}
	free(f.weights);
	free(f.normalisers);
	free(f.scales);
	free(f.squares);
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

	schedule_state_step(&c->schedule, c->setup.job, &r, &out->turn);
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
	enum err e = fold(c, out, in, &made, why);
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
