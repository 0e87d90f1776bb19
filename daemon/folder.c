#include "folder.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "codec.h"
#include "cpu.h"
#include "evalset.h"
#include "file.h"
#include "hex.h"
#include "log.h"
#include "modelfile.h"
#include "models.h"
#include "rule.h"
#include "server_opt.h"
#include "spool.h"
#include "vec.h"
#include "worker.h"

struct queued {
	struct queued *next;
	struct engine_fold f;
};

struct folder {
	const struct services *services;
	struct evalset *evalset;
	const struct config *evalset_config; /* what it was made from; a reload changes it */
	unsigned threads;
	pthread_t id;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct queued *head, **tail;
	bool running, stopping;
};

/* One accepted delta, ready to be read. */
struct input {
	uint8_t task[16];
	int fd;
	const struct codec *codec;
	struct codec_params params;
	uint64_t payload_bytes, body_bytes;
};

/* One round being folded. */
struct work {
	struct folder *d;
	const struct engine_fold *f;
	struct input *inputs; /* in device-id order */
	double *weights;
	size_t count, room;
	struct models_map *base;
	uint8_t *data; /* the new model's data section */
	float *state; /* server optimizer, NULL if it has none */
	const struct rule *rule;
	const struct server_opt *opt;
	struct server_opt_params opt_params;
	double *unit_norms; /* sum of squares of the update, per unit */
	atomic_int failed; /* first enum err of any thread */
	struct engine_outcome out;
	/* sums over the manifests and reports */
	double loss, accuracy, accuracy_examples;
	double eval_loss, eval_accuracy, eval_examples, eval_accuracy_examples;
};

/* --- reading */

static enum err
read_tile(void *context, size_t delta, uint64_t first, size_t count, float *out)
{
	const struct input *in = &((struct work *)context)->inputs[delta];
	uint8_t bytes[RULE_TILE * sizeof(float) + 64];
	uint64_t at;
	size_t len;

	in->codec->range(&in->params, first, count, &at, &len);
	if (len > sizeof(bytes))
		return ERR_LIMIT;
	enum err e = file_pread(in->fd, bytes, len, at);
	return e ? e : in->codec->decode(&in->params, first, count, bytes, len, out);
}

static void
add_report(struct work *w, const struct store_accept *a, const struct manifest *m)
{
	struct report r;
	double n = (double)m->examples;

	w->loss += n * (double)m->loss;
	if (!isnan(m->accuracy)) {
		w->accuracy += n * (double)m->accuracy;
		w->accuracy_examples += n;
	}
	if (!a->report ||
	    messages_report_decode(&r, a->report, strlen(a->report), NULL) != ERR_OK ||
	    !r.has_evaluate)
		return;
	n = (double)r.eval_examples;
	w->eval_examples += n;
	w->eval_loss += n * r.eval_loss;
	if (!isnan(r.eval_accuracy)) {
		w->eval_accuracy += n * r.eval_accuracy;
		w->eval_accuracy_examples += n;
	}
}

static enum err
grow_inputs(struct work *w)
{
	if (w->count < w->room)
		return ERR_OK;
	size_t room = w->room ? w->room * 2 : 64;
	struct input *inputs = realloc(w->inputs, room * sizeof(*inputs));
	if (inputs)
		w->inputs = inputs;
	double *weights = realloc(w->weights, room * sizeof(*weights));
	if (weights)
		w->weights = weights;
	if (!inputs || !weights)
		return ERR_NOMEM;
	w->room = room;
	return ERR_OK;
}

static enum err
add_input(void *ctx, const struct store_accept *a)
{
	struct work *w = ctx;
	struct manifest m;

	enum err e = grow_inputs(w);
	if (e == ERR_OK)
		e = manifest_decode(&m, a->manifest, sizeof(a->manifest), NULL);
	if (e)
		return e;
	struct input *in = &w->inputs[w->count];
	*in = (struct input){.fd = -1,
	    .codec = codec_find(m.codec),
	    .params = {m.elements, m.block, m.codec_seed},
	    .payload_bytes = m.payload_bytes,
	    .body_bytes = a->body_bytes};
	memcpy(in->task, a->task, 16);
	w->weights[w->count++] = (double)m.examples;
	w->out.row.reports++;
	w->out.row.examples += m.examples;
	w->out.row.bytes_up += a->body_bytes;
	add_report(w, a, &m);
	return in->codec ? ERR_OK : ERR_UNSUPPORTED;
}

static enum err
read_accepted(struct store_db *db, void *arg, struct why *why)
{
	struct work *w = arg;

	(void)why;
	return store_accept_each(db, w->f->job_id, w->f->row.round, add_input, w);
}

static enum err
open_inputs(struct work *w, struct why *why)
{
	enum err e = store_read(w->d->services->store, read_accepted, w, why);

	for (size_t i = 0; i < w->count && e == ERR_OK; i++)
		e = spool_read(w->d->services->spool, w->inputs[i].task, w->inputs[i].payload_bytes,
		    &w->inputs[i].fd, why);
	if (e == ERR_OK && w->count == 0)
		e = err_set(why, ERR_CORRUPT, "the round has no accepted delta");
	return e;
}

/* --- folding */

/* Moves one tensor's share of a unit. Weights pass through a buffer: a foreign model file may not align them. */
static enum err
move_piece(
    struct work *w, const struct tensor *t, uint64_t first, size_t count, const float *update)
{
	static const struct server_opt_params plain = {"sgd", 1, 0};
	float weights[RULE_TILE];
	uint8_t *at = w->data + t->begin + (first - t->first) * sizeof(float);
	bool train = t->role == TENSOR_TRAIN;

	memcpy(weights, at, count * sizeof(float));
	enum err e = w->opt->step(train ? &w->opt_params : &plain, weights, update,
	    train && w->state ? w->state + first : NULL, count);
	memcpy(at, weights, count * sizeof(float));
	return e;
}

static enum err
fold_unit(struct work *w, uint64_t first, size_t count, double *norm)
{
	const struct tensor_table *table = w->f->table;
	struct rule_input in = {read_tile, w, w->count, w->weights};
	float update[RULE_TILE];

	enum err e = w->rule->fold(&in, first, count, update);
	*norm = e ? 0 : vec_sum_squares(update, count);
	for (size_t i = 0; i < table->count && e == ERR_OK; i++) {
		const struct tensor *t = &table->items[i];
		uint64_t from = t->first > first ? t->first : first;
		uint64_t end = t->first + t->elements;
		if (!t->in_delta || end <= first || from >= first + count)
			continue;
		if (end > first + count)
			end = first + count;
		e = move_piece(w, t, from, (size_t)(end - from), update + (from - first));
	}
	return e;
}

static uint64_t
unit_count(const struct work *w)
{
	return (w->f->table->elements + RULE_TILE - 1) / RULE_TILE;
}

static void
run_unit(void *arg, unsigned i)
{
	struct work *w = arg;
	uint64_t first = (uint64_t)i * RULE_TILE;
	uint64_t left = w->f->table->elements - first;

	if (atomic_load(&w->failed))
		return;
	enum err e =
	    fold_unit(w, first, left < RULE_TILE ? (size_t)left : RULE_TILE, &w->unit_norms[i]);
	if (e)
		atomic_store(&w->failed, (int)e);
}

static enum err
prepare_optimizer(struct work *w, struct why *why)
{
	static const uint8_t none[32];
	const struct aggregate_spec *a = &w->f->spec->aggregate;

	w->rule = rule_find(a->rule);
	w->opt = server_opt_find(a->optimizer);
	if (!w->rule || !w->opt)
		return err_set(why, ERR_UNSUPPORTED, "rule %s or optimizer %s is not in this build",
		    a->rule, a->optimizer);
	w->opt_params =
	    (struct server_opt_params){a->optimizer, (float)a->rate, (float)a->momentum};
	size_t floats = w->opt->state_vectors(&w->opt_params) * w->f->table->elements;
	if (floats == 0)
		return ERR_OK;
	w->state = calloc(floats, sizeof(float));
	if (!w->state)
		return err_set(why, ERR_NOMEM, "no memory for the optimizer's state");
	if (memcmp(w->f->row.optimizer_state, none, 32) == 0)
		return ERR_OK;
	return models_state_get(
	    w->d->services->models, w->f->row.optimizer_state, w->state, floats, why);
}

static enum err
fold_all(struct work *w, struct why *why)
{
	enum err e = models_get(w->d->services->models, w->f->row.base, &w->base, why);

	if (e == ERR_OK)
		e = prepare_optimizer(w, why);
	if (e)
		return e;
	uint64_t units = unit_count(w);
	w->data = malloc(w->f->table->bytes);
	w->unit_norms = calloc(units, sizeof(double));
	if (!w->data || !w->unit_norms || units > UINT32_MAX)
		return err_set(why, ERR_NOMEM, "no memory for the new model");
	memcpy(w->data, w->base->data + w->base->data_at, w->f->table->bytes);
	worker_parallel(w->d->threads, (unsigned)units, run_unit, w);
	e = (enum err)atomic_load(&w->failed);
	double sum = 0;
	for (uint64_t i = 0; i < units; i++)
		sum += w->unit_norms[i];
	w->out.row.norm = sqrt(sum);
	if (e)
		err_set(why, e, "folding: %s", err_name(e));
	return e;
}

/* --- results */

static enum err
write_model(struct work *w, struct why *why)
{
	struct modelfile_meta meta = {.round = w->f->row.round};
	struct engine_outcome *o = &w->out;
	struct buf head;

	memcpy(meta.job, w->f->job_hex, sizeof(meta.job));
	hex_encode(meta.base, w->f->row.base, 32);
	buf_init(&head, MODELFILE_HEADER_MAX + MODELFILE_PREFIX);
	enum err e = modelfile_header(&head, w->f->table, &meta);
	if (e == ERR_OK)
		e = models_put(w->d->services->models, head.data, head.len, w->data,
		    w->f->table->bytes, o->row.model, why);
	o->model_bytes = head.len + w->f->table->bytes;
	buf_deinit(&head);
	if (e == ERR_OK && w->state)
		e = models_state_put(w->d->services->models, w->state,
		    w->opt->state_vectors(&w->opt_params) * w->f->table->elements,
		    o->row.optimizer_state, why);
	return e;
}

/* The data sets of the configuration in force. */
static enum err
need_evalset(struct folder *d)
{
	const struct config *config = d->services->config;

	if (d->evalset && d->evalset_config == config)
		return ERR_OK;
	evalset_free(d->evalset);
	d->evalset = NULL;
	d->evalset_config = config;
	return evalset_new(&d->evalset, config);
}

/* The metric of the new model on the coordinator's data. A failure costs the metric, not the round. */
static void
evaluate(struct work *w)
{
	struct train_score score;
	struct why why = {""};

	if (w->f->spec->recipe.evaluate_by != EVALUATE_COORDINATOR)
		return;
	enum err e = need_evalset(w->d);
	if (e == ERR_OK)
		e = evalset_run(w->d->evalset, &w->f->spec->recipe, (const float *)w->data,
		    w->d->threads, &score, &why);
	if (e) {
		log_event(LOG_LEVEL_ERROR, "evaluate.failed", LOG_S("job", w->f->job_hex),
		    LOG_S("why", why.text[0] ? why.text : err_name(e)));
		return;
	}
	w->out.row.evaluate =
	    (struct store_metric){true, score.examples, score.loss, score.accuracy};
}

static void
fill_row(struct work *w)
{
	struct store_round *r = &w->out.row;

	r->bytes_down = w->f->bytes_down;
	r->loss = w->loss / (double)r->examples;
	r->accuracy = w->accuracy_examples > 0 ? w->accuracy / w->accuracy_examples : NAN;
	if (w->f->spec->recipe.evaluate_by == EVALUATE_DEVICES && w->eval_examples > 0)
		r->evaluate = (struct store_metric){true, (uint64_t)w->eval_examples,
		    w->eval_loss / w->eval_examples,
		    w->eval_accuracy_examples > 0 ? w->eval_accuracy / w->eval_accuracy_examples
						  : NAN};
	r->closed_at = clock_wall();
}

static enum err
commit_work(struct store_db *db, void *arg, struct why *why)
{
	struct work *w = arg;
	struct engine_outcome *o = &w->out;
	struct store_model m = {
	    .bytes = o->model_bytes, .round = o->row.round, .created_at = o->row.closed_at};

	(void)why;
	memcpy(m.id, o->row.model, 32);
	memcpy(m.job, w->f->job_id, 16);
	enum err e = store_round_put(db, &o->row);
	if (e == ERR_OK && strcmp(o->row.state, "committed") == 0)
		e = store_model_put(db, &m);
	if (e == ERR_OK && o->begin_next)
		e = store_round_put(db, &o->next);
	if (e == ERR_OK && o->job_state[0])
		e = store_job_set_state(db, w->f->job_id, o->job_state, o->job_reason);
	return e;
}

/* --- retention */

struct old_models {
	const struct work *w;
	const struct config *config;
	uint8_t ids[64][32];
	size_t count;
};

static enum err
collect_old(void *ctx, const struct store_model *m)
{
	struct old_models *o = ctx;
	uint64_t now = o->w->out.row.round;
	uint32_t every = o->config->keep_every;
	bool kept = m->round == 0 || m->round + o->config->keep_last > now ||
	    (every > 0 && m->round % every == 0);

	if (!kept && memcmp(m->job, o->w->f->job_id, 16) == 0 && o->count < 64)
		memcpy(o->ids[o->count++], m->id, 32);
	return ERR_OK;
}

static enum err
forget_old(struct store_db *db, void *arg, struct why *why)
{
	struct old_models *o = arg;

	(void)why;
	enum err e = store_model_each(db, collect_old, o);
	for (size_t i = 0; i < o->count && e == ERR_OK; i++)
		e = store_model_delete(db, o->ids[i]);
	return e;
}

/* Rows first, files after: a crash in between leaves a file without a row, never a row without its file. */
static void
clean_up(struct work *w)
{
	const struct services *s = w->d->services;
	struct old_models *old = calloc(1, sizeof(*old));
	static const uint8_t none[32];
	enum err e = ERR_NOMEM;

	for (size_t i = 0; i < w->count; i++)
		spool_remove(s->spool, w->inputs[i].task, w->inputs[i].payload_bytes);
	if (memcmp(w->f->row.optimizer_state, none, 32) != 0 &&
	    memcmp(w->f->row.optimizer_state, w->out.row.optimizer_state, 32) != 0)
		e = models_state_delete(s->models, w->f->row.optimizer_state);
	if (old) {
		*old = (struct old_models){.w = w, .config = s->config};
		e = store_write(s->store, forget_old, old, NULL);
		for (size_t i = 0; i < old->count && e == ERR_OK; i++)
			e = models_delete(s->models, old->ids[i]);
	}
	if (e && e != ERR_NOMEM)
		log_event(LOG_LEVEL_WARN, "retention.failed", LOG_S("why", err_name(e)));
	free(old);
}

/* --- one round */

static void
release(struct work *w)
{
	for (size_t i = 0; i < w->count; i++)
		if (w->inputs[i].fd >= 0)
			close(w->inputs[i].fd);
	models_map_release(w->base);
	free(w->inputs);
	free(w->weights);
	free(w->data);
	free(w->state);
	free(w->unit_norms);
}

/* A new model that is not finite: the round is committed as failed, its model is its base. */
static void
not_finite(struct work *w)
{
	struct engine_outcome *o = &w->out;

	snprintf(o->row.state, sizeof(o->row.state), "failed");
	snprintf(o->row.reason, sizeof(o->row.reason), "the new model was not finite");
	memcpy(o->row.model, w->f->row.base, 32);
	memcpy(o->row.optimizer_state, w->f->row.optimizer_state, 32);
	o->row.norm = NAN;
	o->model_bytes = w->base->bytes;
}

static enum err
fold_round(struct work *w, struct why *why)
{
	enum err e = open_inputs(w, why);

	if (e == ERR_OK)
		e = fold_all(w, why);
	if (e == ERR_NUMERIC) {
		not_finite(w);
	} else if (e) {
		return e;
	} else {
		snprintf(w->out.row.state, sizeof(w->out.row.state), "committed");
		e = write_model(w, why);
		if (e)
			return e;
		evaluate(w);
	}
	fill_row(w);
	engine_plan(w->d->services->engine, w->f, &w->out);
	return store_write(w->d->services->store, commit_work, w, why);
}

static void
run_round(struct folder *d, const struct engine_fold *f)
{
	struct work w = {.d = d, .f = f};
	struct why why = {""};

	w.out.row = f->row;
	w.out.row.reports = w.out.row.examples = w.out.row.bytes_up = 0;
	enum err e = fold_round(&w, &why);
	if (e) {
		if (!why.text[0])
			err_set(&why, e, "%s", err_name(e));
		engine_fold_failed(d->services->engine, f, &why);
	} else {
		engine_folded(d->services->engine, f, &w.out);
		clean_up(&w);
	}
	release(&w);
}

/* --- the thread */

static struct queued *
next_round(struct folder *d)
{
	pthread_mutex_lock(&d->lock);
	while (!d->head && !d->stopping)
		pthread_cond_wait(&d->wake, &d->lock);
	struct queued *q = d->stopping ? NULL : d->head;
	if (q) {
		d->head = q->next;
		if (!d->head)
			d->tail = &d->head;
	}
	pthread_mutex_unlock(&d->lock);
	return q;
}

static void *
run(void *arg)
{
	struct folder *d = arg;
	struct queued *q;

	while ((q = next_round(d))) {
		run_round(d, &q->f);
		free(q);
	}
	return NULL;
}

enum err
folder_new(struct folder **out, const struct services *services, struct why *why)
{
	struct folder *d = calloc(1, sizeof(*d));

	if (!d)
		return err_set(why, ERR_NOMEM, "no memory");
	d->services = services;
	d->threads = cpu_count();
	d->tail = &d->head;
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->wake, NULL);
	d->running = pthread_create(&d->id, NULL, run, d) == 0;
	if (!d->running) {
		folder_free(d);
		return err_set(why, ERR_NOMEM, "cannot start the folding thread");
	}
	*out = d;
	return ERR_OK;
}

enum err
folder_submit(struct folder *d, const struct engine_fold *f)
{
	struct queued *q = malloc(sizeof(*q));

	if (!q)
		return ERR_NOMEM;
	q->next = NULL;
	q->f = *f;
	pthread_mutex_lock(&d->lock);
	*d->tail = q;
	d->tail = &q->next;
	pthread_cond_signal(&d->wake);
	pthread_mutex_unlock(&d->lock);
	return ERR_OK;
}

void
folder_free(struct folder *d)
{
	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	d->stopping = true;
	pthread_cond_signal(&d->wake);
	pthread_mutex_unlock(&d->lock);
	if (d->running)
		pthread_join(d->id, NULL);
	while (d->head) {
		struct queued *q = d->head;
		d->head = q->next;
		free(q);
	}
	evalset_free(d->evalset);
	pthread_cond_destroy(&d->wake);
	pthread_mutex_destroy(&d->lock);
	free(d);
}
