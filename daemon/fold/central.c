#include "central.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "log.h"
#include "row.h"
#include "store.h"
#include "tasks.h"

#define LOOK_MS 50
#define TELL_MS 3000 /* who is missing is looked for among all devices */

struct waiting {
	struct waiting *next;
	struct central_wait v;
	uint64_t tell_ms; /* when to say again what it waits for */
};

struct central {
	pthread_t id;
	bool running;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t wake;
	struct waiting *head;
	bool stopping;
};

/* --- the report */

struct lookup {
	const struct fold *w;
	struct store_accept row;
};

static enum err
read_row(struct store_db *db, void *arg, struct why *why)
{
	struct lookup *l = arg;

	(void)why;
	return store_evaluation_get(db, l->w->f->job_id, l->w->f->row.round, NULL, &l->row);
}

static void
take_own(struct fold *w, const struct report *r)
{
	const struct monitor_spec *m = &w->f->spec->monitor;

	for (size_t i = 0; m->metric == MONITOR_OWN && i < r->metric_count; i++)
		if (strcmp(r->metrics[i].name, m->name) == 0)
			w->out.row.eval_own = r->metrics[i].value;
	own_metrics_put(&w->own, r);
}

static bool
has_counted(const struct report_counted *c)
{
	return !c->told || c->loss_count > 0 || (c->has_labels && c->labels > 0);
}

/* Does its network have an accuracy? */
static bool
has_accuracy(const struct recipe *r)
{
	return r->net.layer_count > 0 ? net_spec_labels(&r->net) : r->data.class_count > 0;
}

/* What cannot be counted as a number is no figure that is missing: the loss is null then, as where the coordinator measures. False: it is
 * none of this model. */
static bool
take_report(struct fold *w, const struct store_accept *row)
{
	const struct job_spec *spec = w->f->spec;
	struct manifest m;
	struct report r;

	if (manifest_decode(&m, row->manifest, sizeof(row->manifest), NULL) ||
	    memcmp(m.base, w->out.row.model, 32) != 0 || !row->report ||
	    messages_report_decode(&r, row->report, strlen(row->report), NULL))
		return false;
	if (!has_counted(&r.evaluated)) {
		snprintf(w->out.unmeasured, sizeof(w->out.unmeasured),
		    "nothing counted in the evaluator's set");
		return true;
	}
	const bool silent = !isfinite(r.eval_loss) && !isfinite(r.eval_accuracy);
	const bool rates = has_accuracy(&spec->recipe);
	w->out.row.evaluate = (struct store_metric){
	    true, r.eval_examples, r.eval_loss, silent && rates ? 0 : r.eval_accuracy};
	take_own(w, &r);
	return true;
}

/* --- waiting */

static void
lacks_figure(struct fold *w)
{
	char why[ENGINE_UNMEASURED_MAX];

	tasks_central_why(w->engine, w->f, why);
	if (w->out.unmeasured[0])
		snprintf(why, sizeof(why), "%s", w->out.unmeasured);
	else if (!why[0])
		snprintf(why, sizeof(why), "no evaluator's report came within evaluate.deadline_s");
	snprintf(w->out.unmeasured, sizeof(w->out.unmeasured), "%s", why);
	log_event(LOG_LEVEL_WARN, "evaluate.failed", LOG_S("job", w->f->job_hex),
	    LOG_U("round", w->f->row.round), LOG_S("why", why));
}

/* False: there is no report of this model. One in which nothing counted is a report, and no other is waited for. */
static bool
find_report(struct fold *w)
{
	struct lookup l = {.w = w};
	const bool found =
	    store_read(w->uses.store, read_row, &l, NULL) == ERR_OK && take_report(w, &l.row);

	free(l.row.report);
	if (found && !w->out.row.evaluate.known)
		lacks_figure(w);
	return found;
}

/* The round goes on. */
static void
end(struct waiting *x, enum engine_central_state state)
{
	struct fold *w = x->v.w;

	if (state == CENTRAL_REPORTED && !find_report(w))
		state = CENTRAL_LATE;
	if (state == CENTRAL_LATE)
		lacks_figure(w);
	tasks_central_end(w->engine, w->f);
	x->v.done(x->v.context, x->v.round);
	free(x);
}

/* The first that has come to its end, out of the list; NULL: none has. Lock held. */
static struct waiting *
take_ended(struct central *c, enum engine_central_state *state)
{
	for (struct waiting **at = &c->head; *at; at = &(*at)->next) {
		struct waiting *x = *at;
		*state = tasks_central_look(x->v.w->engine, x->v.w->f);
		if (*state == CENTRAL_WAITS)
			continue;
		*at = x->next;
		return x;
	}
	return NULL;
}

/* Lock held: whoever begins to wait can wait for that. */
static void
tell(struct central *c)
{
	const uint64_t now = clock_ms();

	for (struct waiting *x = c->head; x; x = x->next) {
		if (now < x->tell_ms)
			continue;
		tasks_central_tell(x->v.w->engine, x->v.w->f);
		x->tell_ms = now + TELL_MS;
	}
}

/* Lock held, and given away. */
static void
rest(struct central *c)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};

	if (!c->head) {
		pthread_cond_wait(&c->wake, &c->lock);
		return;
	}
	pthread_mutex_unlock(&c->lock);
	(void)nanosleep(&pause, NULL);
	pthread_mutex_lock(&c->lock);
}

static void *
run(void *arg)
{
	struct central *c = arg;
	enum engine_central_state state;

	pthread_mutex_lock(&c->lock);
	while (!c->stopping) {
		struct waiting *x = take_ended(c, &state);
		if (!x) {
			tell(c);
			rest(c);
			continue;
		}
		pthread_mutex_unlock(&c->lock);
		end(x, state);
		pthread_mutex_lock(&c->lock);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

enum err
central_begin(struct central *c, const struct central_wait *v)
{
	struct fold *w = v->w;

	if (find_report(w)) {
		v->done(v->context, v->round);
		return ERR_OK;
	}
	struct waiting *x = calloc(1, sizeof(*x));
	if (!x)
		return ERR_NOMEM;
	x->v = *v;
	tasks_central_begin(w->engine, w->f, w->out.row.model, w->out.model_bytes);
	pthread_mutex_lock(&c->lock);
	x->next = c->head;
	c->head = x;
	pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
	return ERR_OK;
}

enum err
central_new(struct central **out)
{
	struct central *c = calloc(1, sizeof(*c));

	if (!c)
		return ERR_NOMEM;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->wake, NULL);
	c->running = pthread_create(&c->id, NULL, run, c) == 0;
	if (!c->running) {
		central_free(c);
		return ERR_NOMEM;
	}
	*out = c;
	return ERR_OK;
}

void
central_free(struct central *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->stopping = true;
	pthread_cond_broadcast(&c->wake);
	pthread_mutex_unlock(&c->lock);
	if (c->running)
		pthread_join(c->id, NULL);
	while (c->head) {
		struct waiting *x = c->head;
		c->head = x->next;
		x->v.done(x->v.context, x->v.round);
		free(x);
	}
	pthread_cond_destroy(&c->wake);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
