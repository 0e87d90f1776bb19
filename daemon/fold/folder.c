#include "folder.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive.h"
#include "audit.h"
#include "clock.h"
#include "commit.h"
#include "cpu.h"
#include "evaluator.h"
#include "fault.h"
#include "fold.h"
#include "hex.h"
#include "histogram.h"
#include "log.h"
#include "measured.h"
#include "modelfile.h"
#include "models.h"
#include "registry.h"
#include "retention.h"
#include "round_record.h"
#include "spool.h"

/* A closed round. One whose model is to be measured is queued twice: to be folded, and folded. */
struct queued {
	struct queued *next;
	struct engine_fold f;
	struct fold w;
	bool folded;
};

struct folder {
	const struct services *services;
	struct evaluator *evaluator;
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
fill_row(struct fold *w)
{
	struct store_round *r = &w->out.row;

	bool trained = r->state != OUTCOME_EVALUATED;

	r->bytes_down = w->f->bytes_down;
	r->loss = trained && r->examples > 0 ? w->loss / (double)r->examples : NAN;
	r->accuracy =
	    trained && w->accuracy_examples > 0 ? w->accuracy / w->accuracy_examples : NAN;
	r->closed_at = clock_wall();
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
	struct schedule_state before = w->f->schedule;
	const uint8_t *state;
	enum err e = ERR_OK;

	for (uint32_t i = 0; !e && (state = schedule_state_held(&before, i)); i++)
		if (memcmp(state, none, 32) != 0 && !engine_uses_state(w->services->engine, state))
			e = models_state_delete(w->services->models, state);
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

static enum err
remove_early(void *ctx, const struct store_accept *a)
{
	const struct fold *w = ctx;

	spool_remove(w->services->spool, a->task);
	return ERR_OK;
}

static enum err
remove_all_early(struct store_db *db, void *arg, struct why *why)
{
	const struct fold *w = arg;

	(void)why;
	return store_accept_waiting(db, w->f->job_id, w->f->row.round + 1, remove_early, arg);
}

/* Uploads of tasks that are too old now; and of a job that makes no more models all of them, with what was taken for its next round. */
static void
forget_parts(struct fold *w)
{
	const struct services *s = w->services;
	const uint64_t oldest = w->f->spec->round.max_staleness, round = w->f->row.round;

	if (w->out.after.begin_next && round > oldest)
		spool_forget(s->spool, w->f->job_id, round - oldest);
	if (w->out.after.begin_next)
		return;
	spool_forget(s->spool, w->f->job_id, round);
	if (oldest > 0)
		(void)!store_write(s->store, remove_all_early, w, NULL);
}

static void
clean_up(struct fold *w)
{
	const struct services *s = w->services;
	static const uint8_t none[32];
	enum err e = ERR_OK;

	if (w->out.row.state != OUTCOME_EVALUATED)
		leave_spool(s, w);
	forget_parts(w);
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

/* An evaluation: its reports are all there is of it. */
static enum err
read_evaluation(struct fold *w, struct why *why)
{
	struct engine_outcome *o = &w->out;

	o->row.state = OUTCOME_EVALUATED;
	memcpy(o->row.model, w->f->row.base, 32);
	o->row.norm = NAN;
	return fold_read(w, why);
}

/* On the store thread, so that the engine sees rounds end and commands in the order of their commits. */
static void
committed(void *arg)
{
	struct fold *w = arg;

	FAULT("commit.done");
	engine_folded(w->services->engine, w->f, &w->out);
}

/* The new model in memory, or none if it is not finite. */
static enum err
fold_model(struct fold *w, struct why *why)
{
	enum err e = fold_open(w, why);

	if (!e)
		e = fold_run(w, why);
	FAULT("fold.folded");
	fold_close(w);
	if (e == ERR_NUMERIC) {
		round_failed(w);
		snprintf(
		    w->out.row.reason, sizeof(w->out.row.reason), "the new model was not finite");
		return ERR_OK;
	}
	if (!e)
		w->out.row.state = OUTCOME_COMMITTED;
	return e;
}

static enum err
commit_round(struct fold *w, struct why *why)
{
	enum err e = ERR_OK;

	if (w->out.row.state == OUTCOME_COMMITTED)
		e = write_model(w, why);
	if (e)
		return e;
	FAULT("fold.model");
	fill_row(w);
	w->out.fold_seconds = histogram_now() - w->began;
	e = engine_plan(w->services->engine, w->f, &w->out, why);
	FAULT("fold.evaluated");
	return e ? e : store_write_then(w->services->store, commit_work, committed, w, why);
}

/* What a commit that failed leaves: the round may be folded again with other deltas, or never. */
static void
drop_files(const struct fold *w)
{
	const struct services *s = w->services;

	if (w->out.row.state != OUTCOME_COMMITTED)
		return;
	engine_drop_leftover(s, w->out.row.model);
	if (!engine_uses_state(s->engine, w->out.row.optimizer_state))
		(void)!models_state_delete(s->models, w->out.row.optimizer_state);
}

/* A round that is folded, or could not be. */
static void
end_round(struct queued *q, enum err e, struct why *why)
{
	if (!e)
		e = commit_round(&q->w, why);
	if (e) {
		drop_files(&q->w);
		if (!why->text[0])
			err_set(why, e, "%s", err_name(e));
		engine_fold_failed(q->w.services->engine, &q->f, e, why);
	} else {
		FAULT("clean.begin");
		clean_up(&q->w);
		FAULT("clean.done");
	}
	fold_deinit(&q->w);
	engine_fold_end(q->w.services->engine, &q->f);
	free(q);
}

/* --- the queue */

static bool
is_measured(const struct queued *q)
{
	return q->f.job && q->f.no_numbers == 0 &&
	    job_measures(q->f.spec, q->f.row.round, q->f.limit != AFTER_NO_LIMIT);
}

/* May it be taken up now? A round whose model is to be measured is not even folded before its owner's turn has come: models that
 * wait would fill the memory. */
static bool
is_due(const struct folder *d, const struct queued *q)
{
	return q->folded || !is_measured(q) || evaluator_takes(d->evaluator, q->f.owner);
}

/* Lock held. */
static void
append(struct folder *d, struct queued *q)
{
	q->next = NULL;
	*d->tail = q;
	d->tail = &q->next;
}

/* Lock held. */
static void
take_out(struct folder *d, struct queued **at)
{
	struct queued *q = *at;

	*at = q->next;
	if (!*at)
		d->tail = at;
}

/* Its owner has a turn: what else is to be measured for the same one waits behind all others. Lock held. */
static void
end_turn(struct folder *d, const struct queued *last)
{
	size_t n = 0;

	for (const struct queued *q = d->head; q; q = q->next)
		n++;
	for (struct queued **at = &d->head; n > 0; n--) {
		struct queued *q = *at;
		if (q->folded || !is_measured(q) || memcmp(q->f.owner, last->f.owner, 32) != 0) {
			at = &q->next;
			continue;
		}
		take_out(d, at);
		append(d, q);
	}
}

/* Lock held. */
static struct queued *
first_due(struct folder *d)
{
	for (struct queued **at = &d->head; *at; at = &(*at)->next) {
		struct queued *q = *at;
		if (!is_due(d, q))
			continue;
		take_out(d, at);
		if (!q->folded && is_measured(q))
			end_turn(d, q);
		return q;
	}
	return NULL;
}

/* On a thread of the evaluator's. */
static void
evaluated(void *folder, void *round)
{
	struct folder *d = folder;
	struct queued *q = round;

	pthread_mutex_lock(&d->lock);
	q->folded = true;
	append(d, q);
	pthread_cond_signal(&d->wake);
	pthread_mutex_unlock(&d->lock);
}

/* False: the figure will do without. */
static bool
begin_evaluation(struct folder *d, struct queued *q)
{
	const struct evaluation v = {.f = &q->f,
	    .params = (const float *)q->w.tile.step.data,
	    .out = &q->w.out.row.evaluate,
	    .counts = &q->w.counts,
	    .done = evaluated,
	    .context = d,
	    .round = q};

	return is_measured(q) && q->w.out.row.state == OUTCOME_COMMITTED &&
	    evaluator_begin(d->evaluator, &v) == ERR_OK;
}

/* Folds, and either ends the round or has its model measured first. */
static void
begin_round(struct folder *d, struct queued *q)
{
	struct why why = {""};
	struct fold *w = &q->w;

	*w = (struct fold){.services = d->services, .threads = d->threads, .f = &q->f};
	w->began = histogram_now();
	w->out.row = q->f.row;
	w->out.row.reports = w->out.row.examples = w->out.row.bytes_up = 0;
	FAULT("fold.begin");
	enum err e;
	if (q->f.row.state == OUTCOME_EVALUATING)
		e = read_evaluation(w, &why);
	else
		e = q->f.no_numbers > 0 ? no_numbers(w, &why) : fold_model(w, &why);
	if (!e)
		e = measured_end(w, &why);
	if (e || !begin_evaluation(d, q))
		end_round(q, e, &why);
}

/* No round: a job was deleted, and what it named may be free now. */
static void
forget(struct folder *d, struct queued *q)
{
	if (forget_stopped(d->services))
		log_event(LOG_LEVEL_WARN, "retention.failed", LOG_S("why", "states"));
	free(q);
}

/* --- the thread */

static struct queued *
next_round(struct folder *d)
{
	pthread_mutex_lock(&d->lock);
	struct queued *q = NULL;
	while (!d->stopping && !(q = first_due(d)))
		pthread_cond_wait(&d->wake, &d->lock);
	pthread_mutex_unlock(&d->lock);
	return q;
}

static void *
run(void *arg)
{
	struct folder *d = arg;
	struct queued *q;

	while ((q = next_round(d))) {
		struct why why = {""};
		if (!q->f.job)
			forget(d, q);
		else if (q->folded)
			end_round(q, ERR_OK, &why);
		else
			begin_round(d, q);
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
	enum err e = evaluator_new(&d->evaluator, services, d->threads);
	d->running = !e && pthread_create(&d->id, NULL, run, d) == 0;
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
	struct queued *q = calloc(1, sizeof(*q));

	if (!q)
		return ERR_NOMEM;
	q->f = *f;
	pthread_mutex_lock(&d->lock);
	append(d, q);
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
	evaluator_free(d->evaluator);
	while (d->head) {
		struct queued *q = d->head;
		d->head = q->next;
		fold_deinit(&q->w);
		free(q);
	}
	pthread_cond_destroy(&d->wake);
	pthread_mutex_destroy(&d->lock);
	free(d);
}
