#include "folder.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "budget.h"
#include "central.h"
#include "commit.h"
#include "config.h"
#include "cpu.h"
#include "drive.h"
#include "engine.h"
#include "evaluator.h"
#include "fault.h"
#include "fold.h"
#include "histogram.h"
#include "log.h"
#include "measured.h"
#include "models.h"
#include "round_files.h"
#include "round_rest.h"
#include "services.h"
#include "shared.h"
#include "stop.h"
#include "store.h"

/*
 * Small rounds have threads of their own, and large ones others, at a low priority: whoever folds a large model, with whatever rule, gives
 * way to those who fold small ones. Of each kind an owner has one round at work at a time.
 */
enum kind { SMALL, LARGE };
#define LANES_SMALL 2
#define LANES 5
#define SMALL_WORK 1.5e8 /* operations: about a tenth of a second */
#define NICE 10

/* A closed round. One whose model is to be measured is queued twice: to be folded, and folded. */
struct queued {
	struct queued *next;
	struct engine_fold f;
	struct fold w;
	enum kind kind;
	uint64_t bytes; /* that it will take of the budget, */
	bool taken; /* and has */
	bool place; /* the evaluator keeps one */
	bool folded;
	bool written; /* so are its files */
	struct round_files files;
};

/* A thread, and whose round it folds. */
struct lane {
	struct folder *folder;
	enum kind kind;
	pthread_t id;
	bool running, busy;
	uint8_t owner[32];
};

struct folder {
	const struct services *services;
	struct evaluator *evaluator;
	struct central *central;
	unsigned threads;
	struct lane lanes[LANES];
	pthread_mutex_t lock; /* of the lanes and the queue */
	pthread_cond_t wake;
	struct queued *head, **tail;
	bool stopping;
	/* Held from when files get their names to when what the round replaced is gone: what no row names is then of no use to anybody. */
	pthread_mutex_t commit;
};

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
		e = fold_base(w, why);
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
	w->out.row.state = OUTCOME_EVALUATED;
	memcpy(w->out.row.model, w->f->row.base, 32);
	w->out.row.norm = NAN;
	return fold_read(w, why);
}

/* On the store thread, so that the engine sees rounds end and commands in the order of their commits. */
static void
committed(void *arg)
{
	struct fold *w = arg;

	FAULT("commit.done");
	rounds_folded(w->engine, w->f, &w->out);
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

/* Lock of commits held. */
static enum err
commit_round(struct queued *q, struct why *why)
{
	struct fold *w = &q->w;
	enum err e = round_files_keep(&q->files, w, why);

	if (e)
		return e;
	FAULT("fold.model");
	commit_fill(w);
	w->out.fold_seconds = histogram_now() - w->began;
	e = rounds_plan(w->engine, w->f, &w->out, why);
	FAULT("fold.evaluated");
	return e ? e : store_write_then(w->uses.store, commit_work, committed, w, why);
}

/* What a commit that failed leaves: the round may be folded again with other deltas, or never. */
static void
drop_files(const struct queued *q)
{
	const struct fold *w = &q->w;

	if (!q->files.kept)
		return;
	jobs_drop_leftover(w->uses.store, w->uses.models, w->out.row.model);
	if (!engine_uses_state(w->engine, w->out.row.optimizer_state))
		(void)!models_state_delete(w->uses.models, w->out.row.optimizer_state);
}

/* Its memory and its place are others'. */
static void
give_back(struct folder *d, struct queued *q)
{
	fold_deinit(&q->w);
	pthread_mutex_lock(&d->lock);
	if (q->taken)
		budget_give(d->services->budget, q->bytes, q->kind == SMALL);
	if (q->place)
		evaluator_leaves(d->evaluator, q->f.owner);
	pthread_cond_broadcast(&d->wake);
	pthread_mutex_unlock(&d->lock);
}

static void
commit_or_fail(struct folder *d, struct queued *q, enum err e, struct why *why)
{
	struct engine *g = d->services->engine;

	pthread_mutex_lock(&d->commit);
	if (!e)
		e = commit_round(q, why);
	if (e) {
		drop_files(q);
	} else {
		FAULT("clean.begin");
		round_rest_clear(&q->w);
		FAULT("clean.done");
	}
	pthread_mutex_unlock(&d->commit);
	/* A round that a stop broke off is complete in the store: it is folded after the next start. */
	if (!e || (e == ERR_CLOSED && stop_asked(d->services->stop)))
		return;
	if (!why->text[0])
		err_set(why, e, "%s", err_name(e));
	rounds_fold_failed(g, &q->f, &q->w.lack, e, why);
}

/* A round that is folded, or could not be. */
static void
end_round(struct folder *d, struct queued *q, enum err e, struct why *why)
{
	if (!e && !q->written)
		e = round_files_write(&q->files, &q->w, why);
	commit_or_fail(d, q, e, why);
	round_files_drop(&q->files);
	give_back(d, q);
	rounds_fold_end(d->services->engine, &q->f);
	free(q);
}

/* --- the queue */

static bool
is_measured_by(const struct queued *q, enum evaluate_by by)
{
	return q->f.job && q->f.no_numbers == 0 && q->f.spec->recipe.evaluate_by == by &&
	    job_measures(q->f.spec, q->f.row.round, q->f.limit != AFTER_NO_LIMIT);
}

/* Here. */
static bool
is_measured(const struct queued *q)
{
	return is_measured_by(q, EVALUATE_COORDINATOR);
}

/* Has one of this kind a round of the owner in hand? Lock held. */
static bool
is_served(const struct folder *d, const struct queued *q)
{
	for (size_t i = 0; i < LANES; i++) {
		const struct lane *l = &d->lanes[i];
		if (l->busy && l->kind == q->kind && memcmp(l->owner, q->f.owner, 32) == 0)
			return true;
	}
	return false;
}

enum due { DUE, DUE_LATER, DUE_NO_ROOM };

/* May it be taken up now? A round whose model is to be measured is not even folded before its owner's turn has come: models that
 * wait would fill the memory. On DUE it has its memory, and its place. Lock held. */
static enum due
is_due(struct folder *d, struct queued *q)
{
	if (q->folded)
		return DUE;
	if (is_served(d, q))
		return DUE_LATER;
	if (is_measured(q) && !evaluator_takes(d->evaluator, q->f.owner))
		return DUE_LATER;
	q->place = is_measured(q);
	const struct config *c = shared_take(d->services->config);
	const uint64_t all = budget_all(d->services->budget, c->work_bytes);
	shared_give(d->services->config, c);
	q->taken = budget_take(d->services->budget, all, q->bytes, q->kind == SMALL);
	if (q->taken)
		return DUE;
	if (q->place)
		evaluator_leaves(d->evaluator, q->f.owner);
	q->place = false;
	return DUE_NO_ROOM;
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
first_due(struct lane *l)
{
	struct folder *d = l->folder;
	bool full = false;

	for (struct queued **at = &d->head; *at; at = &(*at)->next) {
		struct queued *q = *at;
		/* Who found no room would wait for ever if those behind had what there is; what is folded gives some back. */
		if (q->kind != l->kind || (full && !q->folded))
			continue;
		enum due due = is_due(d, q);
		full |= due == DUE_NO_ROOM;
		if (due != DUE)
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

	q->w.out.evaluation_seconds += histogram_now();
	pthread_mutex_lock(&d->lock);
	q->folded = true;
	q->place = false;
	append(d, q);
	pthread_cond_broadcast(&d->wake);
	pthread_mutex_unlock(&d->lock);
}

/* False: the figure will do without. */
static bool
begin_evaluation(struct folder *d, struct queued *q)
{
	const struct evaluation v = {.f = &q->f,
	    .params = (const float *)q->w.round.step.data,
	    .out = &q->w.out.row.evaluate,
	    .why = q->w.out.unmeasured,
	    .counts = &q->w.counts,
	    .done = evaluated,
	    .context = d,
	    .round = q};

	if (!q->place || q->w.out.row.state != OUTCOME_COMMITTED)
		return false;
	/* Once begun, it may be over, and the round another thread's. */
	q->place = false;
	return evaluator_begin(d->evaluator, &v) == ERR_OK;
}

/* What it has taken of the budget is others' while it waits. */
static void
give_memory(struct folder *d, struct queued *q)
{
	fold_lighten(&q->w);
	pthread_mutex_lock(&d->lock);
	if (q->taken)
		budget_give(d->services->budget, q->bytes, q->kind == SMALL);
	q->taken = false;
	pthread_cond_broadcast(&d->wake);
	pthread_mutex_unlock(&d->lock);
}

/* False: no program is to measure it, or *e says why none can. */
static bool
begin_central(struct folder *d, struct queued *q, enum err *e, struct why *why)
{
	const struct central_wait v = {.w = &q->w, .done = evaluated, .context = d, .round = q};

	if (!is_measured_by(q, EVALUATE_PROGRAM) || q->w.out.row.state != OUTCOME_COMMITTED)
		return false;
	*e = round_files_write(&q->files, &q->w, why);
	q->written = true;
	if (!*e)
		*e = round_files_show(&q->files, &q->w, why);
	if (*e)
		return false;
	give_memory(d, q);
	*e = central_begin(d->central, &v);
	return *e == ERR_OK;
}

/* Folds, and either ends the round or has its model measured first. */
static void
begin_round(struct folder *d, struct queued *q)
{
	struct why why = {""};
	struct fold *w = &q->w;

	*w = (struct fold){.services = d->services,
	    .engine = d->services->engine,
	    .uses = jobs_uses(d->services->engine),
	    .threads = d->threads,
	    .f = &q->f};
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
	w->out.evaluation_seconds = -histogram_now(); /* until it is measured */
	if (!e && begin_central(d, q, &e, &why))
		return;
	if (e || !begin_evaluation(d, q))
		end_round(d, q, e, &why);
}

/* No round: a job was deleted, and what it named may be free now. */
static void
forget(struct folder *d, struct queued *q)
{
	pthread_mutex_lock(&d->commit);
	round_rest_forget(d->services->engine);
	pthread_mutex_unlock(&d->commit);
	free(q);
}

/* --- the threads */

/* What the lane has had in hand is done with. */
static struct queued *
next_round(struct lane *l)
{
	struct folder *d = l->folder;
	struct queued *q = NULL;

	pthread_mutex_lock(&d->lock);
	if (l->busy) {
		l->busy = false;
		pthread_cond_broadcast(&d->wake);
	}
	while (!d->stopping && !(q = first_due(l)))
		pthread_cond_wait(&d->wake, &d->lock);
	if (q) {
		l->busy = !q->folded;
		memcpy(l->owner, q->f.owner, sizeof(l->owner));
	}
	pthread_mutex_unlock(&d->lock);
	return q;
}

static void *
run(void *arg)
{
	struct lane *l = arg;
	struct queued *q;

	/* Of this thread alone, and of those that it starts. */
	if (l->kind == LARGE)
		(void)setpriority(PRIO_PROCESS, 0, NICE);
	while ((q = next_round(l))) {
		struct why why = {""};
		if (!q->f.job)
			forget(l->folder, q);
		else if (q->folded)
			end_round(l->folder, q, ERR_OK, &why);
		else
			begin_round(l->folder, q);
	}
	return NULL;
}

/* Each kind needs one. */
static bool
start_lanes(struct folder *d)
{
	bool has[] = {[SMALL] = false, [LARGE] = false};

	for (size_t i = 0; i < LANES; i++) {
		struct lane *l = &d->lanes[i];
		l->folder = d;
		l->kind = i < LANES_SMALL ? SMALL : LARGE;
		l->running = pthread_create(&l->id, NULL, run, l) == 0;
		has[l->kind] |= l->running;
	}
	return has[SMALL] && has[LARGE];
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
	pthread_mutex_init(&d->commit, NULL);
	pthread_cond_init(&d->wake, NULL);
	enum err e = evaluator_new(&d->evaluator, services, d->threads);
	if (!e)
		e = central_new(&d->central);
	if (e || !start_lanes(d)) {
		folder_free(d);
		return err_set(why, ERR_NOMEM, "cannot start the folding threads");
	}
	*out = d;
	return ERR_OK;
}

/* What takes no arithmetic on models takes no memory for them. */
static void
classify(const struct folder *d, struct queued *q)
{
	const struct config *c = shared_take(d->services->config);
	const uint64_t most = budget_small(budget_all(d->services->budget, c->work_bytes));
	const bool folds = q->f.job && q->f.row.state != OUTCOME_EVALUATING && q->f.no_numbers == 0;

	shared_give(d->services->config, c);
	q->bytes = folds ? q->f.cost.bytes : 0;
	q->kind = folds && (q->f.cost.work > SMALL_WORK || q->bytes > most) ? LARGE : SMALL;
}

enum err
folder_submit(void *folder, const struct engine_fold *f)
{
	struct folder *d = folder;
	struct queued *q = calloc(1, sizeof(*q));

	if (!q)
		return ERR_NOMEM;
	q->f = *f;
	classify(d, q);
	pthread_mutex_lock(&d->lock);
	append(d, q);
	pthread_cond_broadcast(&d->wake);
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
	pthread_cond_broadcast(&d->wake);
	pthread_mutex_unlock(&d->lock);
	for (size_t i = 0; i < LANES; i++)
		if (d->lanes[i].running)
			pthread_join(d->lanes[i].id, NULL);
	evaluator_free(d->evaluator);
	central_free(d->central);
	while (d->head) {
		struct queued *q = d->head;
		d->head = q->next;
		/* A model that waited to be measured is made again after the next start. */
		drop_files(q);
		fold_deinit(&q->w);
		round_files_drop(&q->files);
		if (q->taken)
			budget_give(d->services->budget, q->bytes, q->kind == SMALL);
		free(q);
	}
	pthread_cond_destroy(&d->wake);
	pthread_mutex_destroy(&d->commit);
	pthread_mutex_destroy(&d->lock);
	free(d);
}
