#include "folder.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive.h"
#include "audit.h"
#include "clock.h"
#include "cpu.h"
#include "evalset.h"
#include "fault.h"
#include "fold.h"
#include "hex.h"
#include "histogram.h"
#include "log.h"
#include "modelfile.h"
#include "models.h"
#include "registry.h"
#include "retention.h"
#include "round_record.h"
#include "spool.h"

struct queued {
	struct queued *next;
	struct engine_fold f;
};

struct folder {
	const struct services *services;
	struct evalset *evalset;
	/* What it was made from, held as long; a reload changes it. */
	const struct config *evalset_config;
	unsigned threads;
	pthread_t id;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct queued *head, **tail;
	bool running, stopping;
};

/* --- results */

/* How devices that hold the base get the new model. */
static enum err
write_difference(struct fold *w, struct why *why)
{
	struct difference d = w->tile.step.download.difference;

	if (!d.codec)
		return ERR_OK;
	memcpy(d.job, w->f->job_id, sizeof(d.job));
	d.round = w->f->row.round;
	memcpy(d.from, w->f->row.base, 32);
	memcpy(d.to, w->out.row.model, 32);
	w->out.difference_bytes = DIFFERENCE_HEAD + d.payload_bytes;
	return models_difference_put(w->services->models, &d, w->tile.step.download.payload, why);
}

static enum err
write_model(struct fold *w, struct why *why)
{
	struct modelfile_meta meta = {.round = w->f->row.round};
	struct engine_outcome *o = &w->out;
	struct buf head;

	memcpy(meta.job, w->f->job_hex, sizeof(meta.job));
	hex_encode(meta.base, w->f->row.base, 32);
	buf_init(&head, MODELFILE_HEADER_MAX + MODELFILE_PREFIX);
	enum err e = modelfile_header(&head, w->f->table, &meta);
	if (!e)
		e = models_put(w->services->models, head.data, head.len, w->tile.step.data,
		    w->f->table->bytes, o->row.model, why);
	o->model_bytes = head.len + w->f->table->bytes;
	buf_deinit(&head);
	if (!e)
		e = write_difference(w, why);
	if (!e && w->tile.step.state)
		e = models_state_put(w->services->models, w->tile.step.state,
		    server_step_floats(&w->tile.step), o->row.optimizer_state, why);
	return e;
}

static void
drop_evalset(struct folder *d)
{
	evalset_free(d->evalset);
	d->evalset = NULL;
	shared_give(d->services->config, d->evalset_config);
	d->evalset_config = NULL;
}

/* The data sets of the configuration in force. */
static enum err
need_evalset(struct folder *d)
{
	const struct config *config = shared_take(d->services->config);

	if (d->evalset && d->evalset_config == config) {
		shared_give(d->services->config, config);
		return ERR_OK;
	}
	drop_evalset(d);
	d->evalset_config = config;
	return evalset_new(&d->evalset, config);
}

/* The metric of the new model on the coordinator's data. A failure costs the metric, not the round. */
static void
evaluate(struct folder *d, struct fold *w)
{
	struct train_score score;
	struct why why = {""};

	if (w->f->spec->recipe.evaluate_by != EVALUATE_COORDINATOR)
		return;
	enum err e = need_evalset(d);
	if (!e)
		e = evalset_run(d->evalset, &w->f->spec->recipe, (const float *)w->tile.step.data,
		    w->threads, &score, &why);
	if (e) {
		log_event(LOG_LEVEL_ERROR, "evaluate.failed", LOG_S("job", w->f->job_hex),
		    LOG_S("why", why.text[0] ? why.text : err_name(e)));
		return;
	}
	if (!isfinite(score.loss))
		log_event(LOG_LEVEL_WARN, "evaluate.failed", LOG_S("job", w->f->job_hex),
		    LOG_U("round", w->f->row.round), LOG_S("why", "the loss is not finite"));
	w->out.row.evaluate =
	    (struct store_metric){true, score.examples, score.loss, score.accuracy};
}

static void
fill_row(struct fold *w)
{
	struct store_round *r = &w->out.row;

	r->bytes_down = w->f->bytes_down;
	r->loss = r->examples > 0 ? w->loss / (double)r->examples : NAN;
	r->accuracy = w->accuracy_examples > 0 ? w->accuracy / w->accuracy_examples : NAN;
	if (w->f->spec->recipe.evaluate_by == EVALUATE_DEVICES && w->eval_examples > 0)
		r->evaluate = (struct store_metric){true, (uint64_t)w->eval_examples,
		    w->eval_loss / w->eval_examples,
		    w->eval_accuracy_examples > 0 ? w->eval_accuracy / w->eval_accuracy_examples
						  : NAN};
	if (w->f->no_numbers > 0)
		r->evaluate = (struct store_metric){true, (uint64_t)w->eval_examples, NAN,
		    w->f->spec->guard.metric == GUARD_ACCURACY ? 0 : NAN};
	r->closed_at = clock_wall();
}

static enum err
end_job(struct store_db *db, const struct fold *w, struct why *why)
{
	const struct engine_change change = {
	    w->f->job_id, w->out.after.job_state, w->out.after.job_reason, NULL};
	enum job_state was;

	return engine_change_state(db, w->services, &change, &was, why);
}

/* If another job's old model of the same bytes was removed at this moment, the round is folded again. */
static enum err
put_model(struct store_db *db, const struct fold *w, const struct store_model *m, struct why *why)
{
	enum err e = models_still(w->services->models, m->id, why);

	return e ? ERR_TIMEOUT : store_model_put(db, m);
}

static enum err
commit_work(struct store_db *db, void *arg, struct why *why)
{
	struct fold *w = arg;
	struct engine_outcome *o = &w->out;
	struct store_model m = {
	    .bytes = o->model_bytes, .round = o->row.round, .created_at = o->row.closed_at};

	memcpy(m.id, o->row.model, 32);
	memcpy(m.job, w->f->job_id, 16);
	FAULT("commit.begin");
	enum err e = store_round_put(db, &o->row);
	FAULT("commit.round");
	if (!e && o->row.state == OUTCOME_COMMITTED)
		e = put_model(db, w, &m, why);
	if (!e && o->after.begin_next)
		e = store_round_put(db, &o->next);
	if (!e)
		e = round_record_append(db, w, why);
	if (!e && o->after.job_state)
		e = end_job(db, w, why);
	FAULT("commit.rows");
	return e;
}

/* --- what a round leaves behind */

/* Of a device that was erased since the commit: its other kept deltas were looked for too early to find these. */
static void
forget_erased(const struct services *s, const struct fold *w)
{
	struct registry_view view;

	for (size_t i = 0; i < w->count; i++)
		if (registry_get(s->registry, w->inputs[i].device, &view) == ERR_OK &&
		    registry_is_erased(&view.row))
			(void)!archive_remove(s->archive, w->inputs[i].task);
}

/* What cannot be kept is logged and goes: the round is committed, and its room is needed. */
static void
leave_spool(const struct services *s, const struct fold *w)
{
	const struct config *c = shared_take(s->config);
	struct why why = {""};
	enum err e = ERR_OK;

	for (size_t i = 0; i < w->count; i++) {
		if (c->keep_deltas && !e)
			e = archive_add(s->archive, w->inputs[i].task, c->keep_deltas_bytes, &why);
		spool_remove(s->spool, w->inputs[i].task);
	}
	if (c->keep_deltas)
		forget_erased(s, w);
	if (c->keep_deltas && !e)
		e = archive_sync(s->archive, &why);
	shared_give(s->config, c);
	if (e)
		log_event(LOG_LEVEL_ERROR, "delta.not-kept", LOG_S("job", w->f->job_hex),
		    LOG_U("round", w->f->row.round), LOG_S("why", why.text));
}

/* What the guard could go back to before this round, and now cannot. */
static enum err
forget_states(const struct fold *w)
{
	static const uint8_t none[32];
	const struct guard *g = &w->f->schedule.guard;
	enum err e = ERR_OK;

	for (uint32_t i = 0; i < g->count && !e; i++)
		if (memcmp(g->points[i].state, none, 32) != 0 &&
		    !engine_uses_state(w->services->engine, g->points[i].state))
			e = models_state_delete(w->services->models, g->points[i].state);
	return e;
}

/* Those of jobs that were stopped, in whatever round they were. */
static enum err
forget_stopped(const struct services *s)
{
	uint8_t hash[32];
	enum err e = ERR_OK;

	while (!e && engine_forgotten_state(s->engine, hash))
		if (!engine_uses_state(s->engine, hash))
			e = models_state_delete(s->models, hash);
	return e;
}

static void
clean_up(struct fold *w)
{
	const struct services *s = w->services;
	static const uint8_t none[32];
	enum err e = ERR_OK;

	leave_spool(s, w);
	spool_forget(s->spool, w->f->job_id, w->f->row.round);
	FAULT("clean.spool");
	if (memcmp(w->f->row.optimizer_state, none, 32) != 0 &&
	    !engine_uses_state(s->engine, w->f->row.optimizer_state))
		e = models_state_delete(s->models, w->f->row.optimizer_state);
	/* Of a job that has ended with this round. */
	if (memcmp(w->out.row.optimizer_state, none, 32) != 0 &&
	    !engine_uses_state(s->engine, w->out.row.optimizer_state))
		e = models_state_delete(s->models, w->out.row.optimizer_state);
	if (!e)
		e = forget_states(w);
	if (!e)
		e = forget_stopped(s);
	if (!e)
		e = retention_pass(s);
	if (e)
		log_event(LOG_LEVEL_WARN, "retention.failed", LOG_S("why", err_name(e)));
}

/* --- one round */

/* The round is committed as failed, its model is its base. */
static void
round_failed(struct fold *w)
{
	struct engine_outcome *o = &w->out;

	o->row.state = OUTCOME_FAILED;
	memcpy(o->row.model, w->f->row.base, 32);
	memcpy(o->row.optimizer_state, w->f->row.optimizer_state, 32);
	o->row.norm = NAN;
	o->model_bytes = w->base->bytes;
}

/* Its base gave no numbers: what some made of it all the same is not looked at. */
static enum err
no_numbers(struct fold *w, struct why *why)
{
	enum err e = fold_read(w, why);

	if (!e)
		e = models_get(w->services->models, w->f->row.base, &w->base, why);
	if (e)
		return e;
	round_failed(w);
	snprintf(w->out.row.reason, sizeof(w->out.row.reason),
	    "the loss of its base was not finite on %u devices", w->f->no_numbers);
	return ERR_OK;
}

/* On the store thread, so that the engine sees rounds end and commands in the order of their commits. */
static void
committed(void *arg)
{
	struct fold *w = arg;

	FAULT("commit.done");
	engine_folded(w->services->engine, w->f, &w->out);
}

/* The new model, or none if it is not finite. */
static enum err
fold_model(struct folder *d, struct fold *w, struct why *why)
{
	enum err e = fold_open(w, why);

	if (!e)
		e = fold_run(w, why);
	FAULT("fold.folded");
	if (e == ERR_NUMERIC) {
		round_failed(w);
		snprintf(
		    w->out.row.reason, sizeof(w->out.row.reason), "the new model was not finite");
		return ERR_OK;
	}
	if (e)
		return e;
	w->out.row.state = OUTCOME_COMMITTED;
	e = write_model(w, why);
	if (e)
		return e;
	FAULT("fold.model");
	evaluate(d, w);
	return ERR_OK;
}

static enum err
fold_round(struct folder *d, struct fold *w, struct why *why)
{
	double from = histogram_now();

	FAULT("fold.begin");
	enum err e = w->f->no_numbers > 0 ? no_numbers(w, why) : fold_model(d, w, why);
	if (e)
		return e;
	fill_row(w);
	w->out.fold_seconds = histogram_now() - from;
	e = engine_plan(w->services->engine, w->f, &w->out, why);
	FAULT("fold.evaluated");
	return e ? e : store_write_then(w->services->store, commit_work, committed, w, why);
}

static void
run_round(struct folder *d, const struct engine_fold *f)
{
	struct fold w = {.services = d->services, .threads = d->threads, .f = f};
	struct why why = {""};

	w.out.row = f->row;
	w.out.row.reports = w.out.row.examples = w.out.row.bytes_up = 0;
	enum err e = fold_round(d, &w, &why);
	if (e) {
		if (!why.text[0])
			err_set(&why, e, "%s", err_name(e));
		engine_fold_failed(d->services->engine, f, e, &why);
	} else {
		FAULT("clean.begin");
		clean_up(&w);
		FAULT("clean.done");
	}
	fold_deinit(&w);
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
folder_submit(void *folder, const struct engine_fold *f)
{
	struct folder *d = folder;
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
	drop_evalset(d);
	pthread_cond_destroy(&d->wake);
	pthread_mutex_destroy(&d->lock);
	free(d);
}
