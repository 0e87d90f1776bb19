#include "evaluator.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "clock.h"
#include "counts.h"
#include "err.h"
#include "evalsets.h"
#include "fault.h"
#include "log.h"
#include "row.h"
#include "services.h"
#include "worker.h"

#define PLACES 4
#define NICE 10 /* whoever asks for work or sends a delta goes first */
#define LOOK_MS 50 /* how often it is asked whether the job still lives */

struct place {
	struct evaluator *evaluator;
	struct evaluation v;
	bool taken;
	uint8_t owner[32]; /* for whom */
	uint64_t until_ms;
	_Atomic uint64_t look_ms; /* when to look at the job again */
	atomic_bool late, over; /* why it was broken off: for the deadline, or for good */
};

struct evaluator {
	const struct services *services;
	unsigned threads;
	struct worker_pool *pool;
	pthread_mutex_t lock; /* of the places */
	struct place places[PLACES];
	atomic_bool stopping;
};

/* --- one evaluation */

/* Between two batches, on each of its threads. */
static bool
stop(void *context, uint64_t done, uint64_t planned)
{
	struct place *p = context;
	uint64_t now = clock_ms();

	(void)done;
	(void)planned;
	if (atomic_load(&p->over) || atomic_load(&p->evaluator->stopping))
		return true;
	if (now >= p->until_ms) {
		atomic_store(&p->late, true);
		return true;
	}
	if (now < atomic_load(&p->look_ms))
		return false;
	atomic_store(&p->look_ms, now + LOOK_MS);
	FAULT("evaluate.batch");
	if (!jobs_lives(p->evaluator->services->engine, p->v.f->job))
		atomic_store(&p->over, true);
	return atomic_load(&p->over);
}

static void
log_failure(const struct place *p, const char *why)
{
	log_event(LOG_LEVEL_WARN, "evaluate.failed", LOG_S("job", p->v.f->job_hex),
	    LOG_U("round", p->v.f->row.round), LOG_S("why", why));
}

static void
lacks_figure(const struct place *p, const char *why)
{
	log_failure(p, why);
	snprintf(p->v.why, ENGINE_UNMEASURED_MAX, "%.*s", ENGINE_UNMEASURED_MAX - 1, why);
}

/* What is counted, if something is to be. */
static enum err
make_counts(const struct recipe *r, struct counts **out, struct why *why)
{
	return figure_set_any(&r->figures) ? counts_new(out, &r->figures, r->data.class_count, why)
					   : ERR_OK;
}

/* The shares of the set are one report. */
static void
keep_counts(struct place *p, struct counts *counts, bool good)
{
	if (good && counts)
		counts->reports = 1;
	if (good)
		*p->v.counts = counts;
	else
		counts_free(counts);
}

#define NOTHING_COUNTS \
	"no label of the evaluation set counts: all are model.ignore_index, or weigh 0"

static bool
has_counted(const struct train_score *s)
{
	return s->weight > 0 || s->labels > 0;
}

/* A failure costs the metric, not the round. */
static void
measure(struct place *p)
{
	struct evalset_work work = {.recipe = &p->v.f->spec->recipe,
	    .params = p->v.params,
	    .threads = p->evaluator->threads,
	    .budget = p->evaluator->services->budget,
	    .stop = stop,
	    .context = p};
	const struct services *services = p->evaluator->services;
	struct evalsets_use *sets = NULL;
	struct train_score score = {.loss = NAN};
	struct why why = {""};

	FAULT("evaluate.begin");
	enum err e = evalsets_take(services->sets, services->config, &sets);
	if (!e)
		e = make_counts(work.recipe, &work.counts, &why);
	if (!e)
		e = evalset_run(sets->set, &work, &score, &why);
	evalsets_give(sets, services->config);
	keep_counts(p, work.counts, !e && isfinite(score.loss));
	if (e == ERR_CLOSED) {
		if (atomic_load(&p->late))
			log_failure(p, "evaluate.deadline_s is over; the round goes on without it");
		return;
	}
	if (e)
		lacks_figure(p, why.text[0] ? why.text : err_name(e));
	else if (!has_counted(&score))
		lacks_figure(p, NOTHING_COUNTS);
	else if (!isfinite(score.loss) && score.weight > 0)
		log_failure(p, "the loss is not finite");
	if (!e && has_counted(&score))
		*p->v.out = (struct store_metric){true, score.examples, score.loss, score.accuracy};
}

static void
run(void *arg)
{
	struct place *p = arg;
	struct evaluator *e = p->evaluator;

	/* Of this thread alone, and of those that it starts. */
	(void)setpriority(PRIO_PROCESS, 0, NICE);
	measure(p);
	const struct evaluation v = p->v;
	pthread_mutex_lock(&e->lock);
	p->taken = false;
	pthread_mutex_unlock(&e->lock);
	v.done(v.context, v.round);
}

/* --- all of them */

static struct place *
free_place(struct evaluator *e)
{
	for (size_t i = 0; i < PLACES; i++)
		if (!e->places[i].taken)
			return &e->places[i];
	return NULL;
}

static struct place *
place_of(struct evaluator *e, const uint8_t owner[32])
{
	for (size_t i = 0; i < PLACES; i++)
		if (e->places[i].taken && memcmp(e->places[i].owner, owner, 32) == 0)
			return &e->places[i];
	return NULL;
}

bool
evaluator_takes(struct evaluator *e, const uint8_t owner[32])
{
	pthread_mutex_lock(&e->lock);
	struct place *p = place_of(e, owner) ? NULL : free_place(e);
	if (p) {
		p->taken = true;
		memcpy(p->owner, owner, sizeof(p->owner));
	}
	pthread_mutex_unlock(&e->lock);
	return p;
}

void
evaluator_leaves(struct evaluator *e, const uint8_t owner[32])
{
	pthread_mutex_lock(&e->lock);
	struct place *p = place_of(e, owner);
	if (p)
		p->taken = false;
	pthread_mutex_unlock(&e->lock);
}

enum err
evaluator_begin(struct evaluator *e, const struct evaluation *v)
{
	double ms = v->f->evaluate_deadline_s * 1000;

	pthread_mutex_lock(&e->lock);
	struct place *p = place_of(e, v->f->owner);
	if (p) {
		p->v = *v;
		p->until_ms = clock_ms() + (uint64_t)ms;
		atomic_store(&p->look_ms, 0);
		atomic_store(&p->late, false);
		atomic_store(&p->over, false);
	}
	pthread_mutex_unlock(&e->lock);
	enum err result = p ? worker_submit(e->pool, run, p) : ERR_STATE;
	if (result)
		evaluator_leaves(e, v->f->owner);
	return result;
}

enum err
evaluator_new(struct evaluator **out, const struct services *services, unsigned threads)
{
	struct evaluator *e = calloc(1, sizeof(*e));

	if (!e)
		return ERR_NOMEM;
	e->services = services;
	e->threads = threads;
	pthread_mutex_init(&e->lock, NULL);
	for (size_t i = 0; i < PLACES; i++)
		e->places[i].evaluator = e;
	if (worker_pool_new(&e->pool, PLACES)) {
		evaluator_free(e);
		return ERR_NOMEM;
	}
	*out = e;
	return ERR_OK;
}

void
evaluator_free(struct evaluator *e)
{
	if (!e)
		return;
	atomic_store(&e->stopping, true);
	worker_pool_free(e->pool);
	pthread_mutex_destroy(&e->lock);
	free(e);
}
