#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backoff.h"
#include "choice.h"
#include "evalset.h"
#include "file.h"
#include "fold_tile.h"
#include "hash.h"
#include "hex.h"
#include "manifest.h"
#include "modelfile.h"
#include "net.h"
#include "simulate.h"
#include "train.h"
#include "worker.h"

/* --- the model */

/* Writes the head of the model's file and names it by the hash of that file. */
static enum err
name_model(struct simulate_round *r, const uint8_t *base)
{
	struct modelfile_meta meta = {.round = r->number};
	struct hash *h = hash_new();

	if (!h)
		return ERR_NOMEM;
	memcpy(meta.job, r->job_hex, sizeof(meta.job));
	if (base)
		hex_encode(meta.base, base, 32);
	buf_deinit(&r->head);
	buf_init(&r->head, MODELFILE_HEADER_MAX + MODELFILE_PREFIX);
	enum err e = modelfile_header(&r->head, &r->table, &meta);
	if (!e) {
		hash_start(h);
		hash_update(h, r->head.data, r->head.len);
		hash_update(h, r->data, r->table.bytes);
		hash_finish(h, r->model);
		r->model_bytes = r->head.len + r->table.bytes;
	}
	hash_free(h);
	return e;
}

static enum err
draw_model(struct simulate_round *r, struct why *why)
{
	const struct recipe *recipe = &r->job->recipe;
	struct net *net = NULL;

	enum err e = net_new(&net, &recipe->net, recipe->data.class_count, 1, false, 0, why);
	if (e)
		return e;
	net_init(net, r->job->seed);
	e = tensor_table_copy(&r->table, net_tensors(net));
	if (!e)
		e = tensor_table_assign(&r->table, recipe->rules, recipe->rule_count, why);
	r->data = malloc(net_tensors(net)->bytes);
	if (!e && !r->data)
		e = ERR_NOMEM;
	if (!e)
		memcpy(r->data, net_params(net), r->table.bytes);
	net_free(net);
	return e ? e : name_model(r, NULL);
}

enum err
simulate_round_init(struct simulate_round *r, const struct job_spec *job, const char *text,
    size_t len, struct why *why)
{
	uint8_t digest[HASH_LEN];

	r->job = job;
	buf_init(&r->head, 0);
	hash_sha256(digest, text, len);
	hex_encode(r->job_hex, digest, 16);
	r->scale = scale_start();
	if (job->recipe.init[0] || !job->recipe.builtin || job->recipe.local.seconds > 0 ||
	    job->guard.on)
		return err_set(why, ERR_UNSUPPORTED,
		    "only jobs with layers, the built-in trainer and epochs or steps, without "
		    "guard");
	if (job->round.goal > r->fleet->count ||
	    (job->round.goal < r->fleet->count && !job->round.sample))
		return err_set(why, ERR_INVALID,
		    "round.goal is %u of %zu devices: fewer need \"pick\": \"sample\"",
		    job->round.goal, r->fleet->count);
	enum err e = rule_check(&job->aggregate.rule, job->round.quorum, why);
	if (!e)
		e = evalset_new(&r->evalset, r->fleet->config);
	r->memories = calloc(r->fleet->count, sizeof(*r->memories));
	if (!e && !r->memories)
		e = ERR_NOMEM;
	return e ? e : draw_model(r, why);
}

void
simulate_round_deinit(struct simulate_round *r)
{
	tensor_table_deinit(&r->table);
	evalset_free(r->evalset);
	buf_deinit(&r->head);
	for (size_t i = 0; r->memories && i < r->fleet->count; i++) {
		free(r->memories[i].residual);
		free(r->memories[i].own);
	}
	free(r->memories);
	free(r->data);
	free(r->state);
}

enum err
simulate_round_save(const struct simulate_round *r, const char *path, struct why *why)
{
	struct buf file;
	void *at;

	buf_init(&file, SIZE_MAX / 2);
	enum err e = buf_append(&file, r->head.data, r->head.len);
	if (!e)
		e = buf_extend(&file, r->table.bytes, &at);
	if (!e) {
		memcpy(at, r->data, r->table.bytes);
		e = file_write(path, file.data, file.len, 0644, why);
	}
	buf_deinit(&file);
	return e;
}

/* --- choosing devices */

static int
compare_ids(const void *a, const void *b)
{
	return memcmp(a, b, 32);
}

/* The goal's number of devices by the draw of a round, in the order of their ids. */
static enum err
choose(const struct simulate_round *r, struct simulate_report *reports)
{
	const struct simulate_fleet *f = r->fleet;
	uint8_t(*ids)[32] = calloc(f->count, sizeof(*ids));

	if (!ids)
		return ERR_NOMEM;
	for (size_t i = 0; i < f->count; i++)
		memcpy(ids[i], f->devices[i].id, 32);
	enum err e = choice_draw(ids, f->count, r->job->seed, r->number);
	if (!e)
		qsort(ids, r->job->round.goal, sizeof(*ids), compare_ids);
	for (size_t i = 0; !e && i < r->job->round.goal; i++)
		reports[i].device =
		    bsearch(ids[i], f->devices, f->count, sizeof(*f->devices), compare_ids);
	free(ids);
	return e;
}

/* --- a round */

struct training {
	struct simulate_round *r;
	struct simulate_report *reports;
	size_t count;
};

static void
train_one(void *arg, unsigned i)
{
	struct training *c = arg;

	simulate_device_train(c->r, &c->reports[i]);
}

static void
encode_one(void *arg, unsigned i)
{
	struct training *c = arg;

	simulate_device_encode(c->r, &c->reports[i]);
}

static enum err
first_error(const struct training *c, struct why *why)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->reports[i].e) {
			*why = c->reports[i].why;
			return c->reports[i].e;
		}
	return ERR_OK;
}

/* --- what the coordinator does */

struct folding {
	struct fold_tile tile;
	struct simulate_report **accepted;
	double *weights, *normalisers, *squares;
	size_t count;
	enum err *results; /* of each tile or strip */
};

static enum err
read_vector(void *context, unsigned which, size_t delta, uint64_t first, size_t count, float *out)
{
	const struct folding *f = context;
	const struct simulate_report *p = f->accepted[delta];
	struct codec_memory memory = {p->payload, p->len};
	const struct codec_source source = {codec_memory_read, &memory};

	return vectors_read(&p->vectors, which, &source, first, count, out);
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
	f->results = calloc(n + 1, sizeof(*f->results));
	if (!f->results)
		return ERR_NOMEM;
	worker_parallel(threads, n, fn, f);
	enum err e = ERR_OK;
	for (unsigned i = 0; i < n && !e; i++)
		e = f->results[i];
	free(f->results);
	return e;
}

static enum err
fold(struct simulate_round *r, struct folding *f, struct why *why)
{
	struct fold_tile *t = &f->tile;
	unsigned tiles = (unsigned)fold_tile_count(t);

	enum err e = fold_tile_begin(t, why);
	while (!e && fold_sum_measures(&t->sum) > 0) {
		e = in_parallel(f, r->threads, fold_sum_measures(&t->sum), run_strip);
		if (!e)
			e = fold_sum_plan(&t->sum);
	}
	f->squares = calloc(tiles, sizeof(double));
	if (!e && !f->squares)
		e = ERR_NOMEM;
	if (!e)
		e = in_parallel(f, r->threads, tiles, run_tile);
	if (!e)
		r->norm = fold_tile_norm(f->squares, tiles);
	fold_sum_end(&t->sum);
	return e;
}

/* Base and state are copied first: a round that fails leaves them. */
static enum err
prepare(struct simulate_round *r, struct folding *f, struct why *why)
{
	struct fold_tile *t = &f->tile;
	struct server_step *s = &t->step;

	s->table = &r->table;
	t->sum.normalisers = f->normalisers;
	enum err e = fold_tile_choose(t, &r->job->aggregate, r->number, why);
	if (!e)
		e = server_step_download(s, &r->job->download, r->job->seed, r->number, why);
	if (e)
		return e;
	server_step_scale(s, scale_next(&r->scale, &r->job->aggregate.scale, f->count));
	size_t floats = server_step_floats(s);
	s->data = malloc(r->table.bytes);
	s->state = floats ? malloc(floats * sizeof(float)) : NULL;
	if (!s->data || (floats && !s->state))
		return ERR_NOMEM;
	memcpy(s->data, r->data, r->table.bytes);
	if (floats && r->state)
		memcpy(s->state, r->state, floats * sizeof(float));
	else if (floats)
		server_step_start(s, s->state);
	t->sum.deltas = (struct rule_input){.read_tile = read_tile,
	    .context = f,
	    .deltas = f->count,
	    .weights = f->weights,
	    .seed = fold_sum_seed(r->job->seed, r->number)};
	t->sum.changes = t->sum.deltas;
	t->sum.changes.read_tile = read_change;
	r->state_floats = floats;
	return ERR_OK;
}

/* A device that holds an older model follows by the differences in between, unless the whole model is shorter. */
static void
count_downloads(struct simulate_round *r, const struct training *c)
{
	const struct codec *codec = codec_find_name(r->job->download.codec);
	uint64_t step = codec ? DIFFERENCE_HEAD + difference_payload_bytes(codec, r->table.elements)
			      : r->model_bytes;

	r->bytes_down = 0;
	for (size_t i = 0; i < c->count; i++) {
		uint64_t *held = &r->memories[c->reports[i].device - r->fleet->devices].held;
		uint64_t behind = *held ? r->number - *held : UINT64_MAX;
		uint64_t bytes = behind < 1000 ? behind * step : r->model_bytes;
		r->bytes_down += bytes < r->model_bytes ? bytes : r->model_bytes;
		*held = r->number;
		/* The coordinator's control variate comes with the state that it is part of. */
		if (r->job->recipe.local.variates > 0 && r->state)
			r->bytes_down += r->state_floats * sizeof(float);
	}
}

/* Figures of the round, and which reports count. */
static enum err
collect(struct simulate_round *r, struct folding *f, struct training *c)
{
	double loss = 0, examples = 0;

	f->accepted = calloc(c->count, sizeof(struct simulate_report *));
	f->weights = calloc(c->count, sizeof(*f->weights));
	f->normalisers = calloc(c->count, sizeof(*f->normalisers));
	if (!f->accepted || !f->weights || !f->normalisers)
		return ERR_NOMEM;
	r->bytes_up = 0;
	for (size_t i = 0; i < c->count; i++) {
		struct simulate_report *p = &c->reports[i];
		if (p->refused)
			continue;
		f->accepted[f->count] = p;
		f->normalisers[f->count] = (double)(float)p->normaliser;
		f->weights[f->count++] = (double)p->examples;
		r->bytes_up += manifest_body_bytes(p->len);
		loss += (double)p->examples * p->loss;
		examples += (double)p->examples;
	}
	r->reports = f->count;
	r->refused = c->count - f->count;
	count_downloads(r, c);
	r->train_loss = loss / examples;
	return f->count < r->job->round.quorum ? ERR_STATE : ERR_OK;
}

static enum err
aggregate(struct simulate_round *r, struct training *c, struct why *why)
{
	struct folding f = {.count = 0};
	uint8_t base[32];

	memcpy(base, r->model, sizeof(base));
	enum err e = collect(r, &f, c);
	if (!e)
		e = prepare(r, &f, why);
	if (!e)
		e = fold(r, &f, why);
	if (!e) {
		free(r->data);
		free(r->state);
		r->data = f.tile.step.data;
		r->state = f.tile.step.state;
		e = name_model(r, base);
	} else {
		free(f.tile.step.data);
		free(f.tile.step.state);
	}
	free(f.accepted);
	free(f.weights);
	free(f.normalisers);
	free(f.squares);
	return e;
}

static enum err
evaluate(struct simulate_round *r, struct why *why)
{
	const struct recipe *recipe = &r->job->recipe;
	struct train_score score;
	struct net *net = NULL;
	const struct evalset_work work = {
	    .recipe = recipe, .params = (const float *)r->data, .threads = r->threads};

	const bool last = r->number == r->job->stop.rounds;
	r->evaluated = job_measures(r->job, r->number, last) &&
	    (r->number % r->fleet->evaluate_every == 0 || last);
	r->backdoor = NAN;
	if (!r->evaluated)
		return ERR_OK;
	enum err e = evalset_run(r->evalset, &work, &score, why);
	if (e == ERR_NUMERIC) {
		/* Weights are finite and what they make of an example is not: nothing is right. */
		r->accuracy = r->loss = NAN;
		return ERR_OK;
	}
	if (e)
		return e;
	r->accuracy = score.accuracy;
	r->loss = score.loss;
	if (r->fleet->triggered.count == 0)
		return ERR_OK;
	e = net_new(&net, &recipe->net, recipe->data.class_count, 32, false, 0, why);
	if (e)
		return e;
	memcpy(net_params(net), r->data, r->table.bytes);
	e = train_evaluate(net, &r->fleet->triggered, &recipe->data, &score, why);
	r->backdoor = e ? (double)NAN : score.accuracy;
	net_free(net);
	return e;
}

enum err
simulate_round_run(struct simulate_round *r, struct why *why)
{
	size_t n = r->job->round.goal;
	struct training c = {r, calloc(n, sizeof(*c.reports)), n};
	double began = backoff_now();

	r->number++;
	r->evaluated = false;
	enum err e = c.reports ? choose(r, c.reports) : ERR_NOMEM;
	if (!e) {
		worker_parallel(r->threads, (unsigned)n, train_one, &c);
		e = first_error(&c, why);
	}
	if (!e)
		e = simulate_attack_deltas(r->fleet, c.reports, n, r->table.elements, r->number);
	if (!e) {
		worker_parallel(r->threads, (unsigned)n, encode_one, &c);
		e = first_error(&c, why);
	}
	if (!e)
		e = aggregate(r, &c, why);
	if (!e)
		e = evaluate(r, why);
	for (size_t i = 0; c.reports && i < n; i++) {
		free(c.reports[i].delta);
		free(c.reports[i].change);
		free(c.reports[i].payload);
	}
	free(c.reports);
	r->seconds = backoff_now() - began;
	return e;
}
