#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "allowance.h"
#include "bytes.h"
#include "difference.h"
#include "play_inside.h"
#include "training.h"
#include "worker.h"

/* --- given */

enum err
simulate_play_examples(const struct simulate_play *p, size_t device, uint64_t *out, struct why *why)
{
	if (p->setup.deal)
		return fleet_deal_count(p->setup.deal, device, out, why);
	*out = fleet_profile_of(p->setup.fleet, device)->examples;
	/* Who need not say has what a step takes. */
	if (*out == 0)
		*out = p->job->recipe.local.batch;
	return ERR_OK;
}

/* A device that holds an older model follows by the differences in between, unless the whole model is shorter. */
static uint64_t
download(struct simulate_play *p, size_t device)
{
	const struct simulate_model *base = p->coordinator.base;
	uint64_t *held = &p->crowd.people[device].held, bytes = base->base.file_bytes;
	uint64_t behind = *held >= p->chain && *held > 0 ? p->number - *held : UINT64_MAX;

	if (p->step_bytes > 0 && behind < 1000 && behind * p->step_bytes < bytes)
		bytes = behind * p->step_bytes;
	else if (behind == 0)
		bytes = 0;
	*held = p->number;
	/* The coordinator's control variate comes with the state that it is part of. */
	if (p->job->recipe.local.variates > 0 && base->state)
		bytes += p->coordinator.state_floats * sizeof(float);
	return bytes;
}

/* Work by time. */
static struct fleet_amount
sized(struct simulate_play *p, size_t device, uint64_t examples)
{
	const struct local_spec *l = &p->job->recipe.local;
	uint64_t steps = simulate_crowd_steps(&p->crowd, device, l);

	return (struct fleet_amount){steps, training_samples(l, examples, steps)};
}

static enum err
work_of(struct simulate_play *p, struct simulate_task *t, struct fleet_work *w, struct why *why)
{
	uint64_t examples = 0;
	double speed = fleet_speed(p->setup.fleet, t->work.device);
	enum err e = simulate_play_examples(p, t->work.device, &examples, why);

	if (e)
		return e;
	w->bytes_down = download(p, t->work.device);
	p->line.bytes_down += w->bytes_down;
	examples = allowance_of(
	    &p->job->recipe, p->evaluating, examples, 0, p->job->aggregate.max_examples)
		       .train;
	if (p->evaluating) {
		w->samples = (double)examples;
		return ERR_OK;
	}
	const struct fleet_amount a = p->job->recipe.local.unit == LOCAL_SIZED
	    ? sized(p, t->work.device, examples)
	    : fleet_task_amount(&p->job->recipe.local, examples, speed);
	t->work.steps = a.steps;
	w->samples = a.samples;
	w->bytes_up = manifest_body_bytes(p->payload);
	return ERR_OK;
}

/* When its delta arrives, or the device gives up. */
static struct simulate_event
foresee(struct simulate_play *p, struct simulate_task *t, const struct fleet_work *w)
{
	size_t device = t->work.device;
	const struct fleet_times times = fleet_times(p->setup.fleet, device, w);
	double share;

	t->fails = fleet_fails(p->setup.fleet, device, p->crowd.people[device].tasks++, &share);
	t->worked_us = times.fetch_us +
	    (t->fails ? (uint64_t)(share * (double)times.train_us)
		      : times.train_us + times.send_us);
	t->paced_us = times.fetch_us + times.train_us;
	t->given_us = p->us;
	t->arrives_us = fleet_back(p->setup.fleet, device, p->us + t->worked_us);
	return (struct simulate_event){.us = t->arrives_us,
	    .kind = t->fails ? SIMULATE_GIVES_UP : SIMULATE_DELIVERS,
	    .device = device,
	    .subject = t};
}

enum err
simulate_play_watch(struct simulate_play *p, size_t device, uint64_t given_us)
{
	const uint64_t until = given_us + (uint64_t)(p->job->round.task_timeout_s * 1e6);
	const struct simulate_event event = {
	    .us = until > p->us ? until : p->us, .kind = SIMULATE_EXPIRES, .device = device};

	return p->round.policy.buffered ? simulate_heap_add(&p->heap, &event) : ERR_OK;
}

/* Most are answered before that. */
static enum err
watch(struct simulate_play *p, const struct simulate_task *t)
{
	const uint64_t until = p->us + (uint64_t)(p->job->round.task_timeout_s * 1e6);

	return until < t->arrives_us ? simulate_play_watch(p, t->work.device, p->us) : ERR_OK;
}

static enum err
enter(struct simulate_play *p, struct simulate_task *t)
{
	void *grown =
	    bytes_grow(p->tasks, p->task_count, &p->task_room, sizeof(struct simulate_task *));

	if (!grown)
		return ERR_NOMEM;
	p->tasks = grown;
	t->place = p->task_count;
	p->tasks[p->task_count++] = t;
	return ERR_OK;
}

enum err
simulate_play_give(struct simulate_play *p, size_t device, struct why *why)
{
	struct simulate_task *t = calloc(1, sizeof(*t));
	struct fleet_work w = {.samples = 0};
	enum err e = t ? enter(p, t) : ERR_NOMEM;

	if (e) {
		free(t);
		return e;
	}
	t->base = simulate_model_take(p->coordinator.base);
	t->work = (struct fleet_task){.device = device,
	    .round = p->number,
	    .base = &t->base->base,
	    .kind = p->evaluating ? TASK_EVALUATE : TASK_TRAIN};
	simulate_crowd_leave(&p->crowd, device);
	e = work_of(p, t, &w, why);
	if (e)
		return e;
	const struct simulate_event event = foresee(p, t, &w);
	e = simulate_heap_add(&p->heap, &event);
	return e ? e : watch(p, t);
}

void
simulate_play_drop(struct simulate_play *p, struct simulate_task *t)
{
	struct simulate_task *last = p->tasks[--p->task_count];

	p->tasks[t->place] = last;
	last->place = t->place;
	fleet_task_deinit(&t->work);
	simulate_model_drop(t->base);
	free(t);
}

/* --- computed */

struct batch {
	struct simulate_play *p;
	struct fleet_task **items;
	size_t count;
};

static void
train_one(void *arg, unsigned i)
{
	struct batch *b = arg;

	fleet_task_train(&b->p->setup, b->items[i]);
}

static void
encode_one(void *arg, unsigned i)
{
	struct batch *b = arg;

	fleet_task_encode(&b->p->setup, b->items[i]);
}

static int
compare_arrivals(const void *a, const void *b)
{
	const struct simulate_task *const *x = a, *const *y = b;

	if ((*x)->arrives_us != (*y)->arrives_us)
		return (*x)->arrives_us < (*y)->arrives_us ? -1 : 1;
	return ((*x)->work.device > (*y)->work.device) - ((*x)->work.device < (*y)->work.device);
}

/* Tasks whose deltas are likely to be wanted: the next ones that arrive for this round, no more than it still takes. Attackers who agree
 * on a vector know all deltas of the round. */
static size_t
choose(struct simulate_play *p, struct simulate_task **out, const struct simulate_task *t)
{
	const struct round *r = &p->round;
	size_t n = 0, most = r->policy.goal > r->accepted ? r->policy.goal - r->accepted : 1;

	for (size_t i = 0; i < p->task_count; i++) {
		struct simulate_task *c = p->tasks[i];
		if (!c->computed && !c->fails && !c->accepted &&
		    (p->round.policy.late || c->work.round == t->work.round))
			out[n++] = c;
	}
	qsort(out, n, sizeof(struct simulate_task *), compare_arrivals);
	return p->agreed || n < most ? n : most;
}

static int
compare_devices(const void *a, const void *b)
{
	const struct fleet_task *const *x = a, *const *y = b;

	return ((*x)->device > (*y)->device) - ((*x)->device < (*y)->device);
}

/* The hostile among them, with what is known of the round. */
static enum err
attack(struct simulate_play *p, uint64_t round)
{
	struct fleet_task **all = calloc(p->task_count + 1, sizeof(void *));
	size_t n = 0;

	if (!all)
		return ERR_NOMEM;
	for (size_t i = 0; i < p->task_count; i++)
		if (p->tasks[i]->work.round == round && p->tasks[i]->work.delta)
			all[n++] = &p->tasks[i]->work;
	qsort(all, n, sizeof(void *), compare_devices);
	enum err e = fleet_task_attack(&p->setup, all, n);
	free(all);
	return e;
}

static enum err
first_error(const struct batch *b, struct why *why)
{
	for (size_t i = 0; i < b->count; i++)
		if (b->items[i]->e) {
			*why = b->items[i]->why;
			return b->items[i]->e;
		}
	return ERR_OK;
}

static enum err
compute(struct simulate_play *p, struct batch *b, uint64_t round, struct why *why)
{
	unsigned threads = p->setup.programs ? p->o->jobs : p->o->setup.threads;

	worker_parallel(threads, (unsigned)b->count, train_one, b);
	enum err e = first_error(b, why);
	if (!e && p->o->setup.hostile)
		e = attack(p, round);
	if (e)
		return e;
	worker_parallel(p->o->setup.threads, (unsigned)b->count, encode_one, b);
	for (size_t i = 0; i < b->count && !p->agreed; i++) {
		free(b->items[i]->delta);
		b->items[i]->delta = NULL;
	}
	return first_error(b, why);
}

enum err
simulate_play_compute(struct simulate_play *p, struct simulate_task *t, struct why *why)
{
	if (t->computed || !p->o->setup.train)
		return ERR_OK;
	struct simulate_task **chosen = calloc(p->task_count + 1, sizeof(struct simulate_task *));
	struct batch b = {p, calloc(p->task_count + 1, sizeof(struct fleet_task *)), 0};
	enum err e = chosen && b.items ? ERR_OK : ERR_NOMEM;
	if (!e)
		b.count = choose(p, chosen, t);
	for (size_t i = 0; !e && i < b.count; i++) {
		b.items[i] = &chosen[i]->work;
		chosen[i]->computed = true;
	}
	if (!e)
		e = compute(p, &b, t->work.round, why);
	free(chosen);
	free(b.items);
	return e;
}
