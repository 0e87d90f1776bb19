#include "task.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backoff.h"
#include "examples.h"
#include "examples_file.h"
#include "finish.h"
#include "hash.h"
#include "hex.h"
#include "program_state.h"
#include "scaffold.h"
#include "training.h"

/* --- memory */

struct fleet_memory *
fleet_memories_new(size_t count)
{
	return calloc(count, sizeof(struct fleet_memory));
}

static void
forget(struct fleet_memory *m)
{
	free(m->residual);
	free(m->own);
	free(m->local);
	*m = (struct fleet_memory){.residual = NULL};
}

void
fleet_memories_free(struct fleet_memory *m, size_t count)
{
	for (size_t i = 0; m && i < count; i++)
		forget(&m[i]);
	free(m);
}

/* Puts what is in `from` in the place of *to. */
static void
replace(void *to, void *from)
{
	void *old, *new;

	memcpy(&old, to, sizeof(old));
	memcpy(&new, from, sizeof(new));
	if (!new)
		return;
	free(old);
	memcpy(to, &new, sizeof(new));
	memset(from, 0, sizeof(new));
}

/* What its program keeps lies there, as in a home of the device's own. */
static bool
kept_home(char out[PATH_MAX], const struct fleet_setup *s, const struct fleet_task *t)
{
	int n =
	    snprintf(out, PATH_MAX, "%s/state%zu", fleet_slots_scratch(s->slots), t->device + 1);

	return n > 0 && n < PATH_MAX;
}

void
fleet_task_accepted(const struct fleet_setup *s, struct fleet_task *t)
{
	char home[PATH_MAX];

	replace(&s->memories[t->device].residual, &t->after.residual);
	/* Without the disk's help the simulation goes on, with what was in force. */
	if (s->programs && kept_home(home, s, t))
		(void)!program_state_accept(home, t->id, NULL);
}

void
fleet_task_committed(const struct fleet_setup *s, struct fleet_task *t)
{
	replace(&s->memories[t->device].own, &t->after.own);
}

void
fleet_task_deinit(struct fleet_task *t)
{
	free(t->delta);
	free(t->change);
	free(t->payload);
	forget(&t->after);
	t->delta = t->change = NULL;
	t->payload = NULL;
}

/* --- how much work */

struct fleet_amount
fleet_task_amount(const struct local_spec *local, uint64_t examples, double speed)
{
	double step = (double)training_step(local, examples);
	uint64_t steps = training_steps(local, examples);
	struct fleet_amount a = {.samples = local->unit == LOCAL_EPOCHS
		? local->amount * (double)examples
		: training_samples(local, examples, steps)};

	/* Who takes no time gets all that is planned, or one step where only the clock would end it. */
	if (local->seconds <= 0 || (speed <= 0 && steps > 0))
		return a;
	double most = speed > 0 && step > 0 ? floor(local->seconds * speed / step) : 1;
	most = most < 1 ? 1 : most > 1e15 ? 1e15 : most;
	if (steps > 0 && most >= (double)steps)
		return a;
	return (struct fleet_amount){(uint64_t)most, most * step};
}

/* --- what stays on the device */

static uint64_t
local_bytes(const struct tensor_table *t)
{
	uint64_t n = 0;

	for (size_t i = 0; i < t->count; i++)
		if (t->items[i].role == TENSOR_LOCAL)
			n += t->items[i].end - t->items[i].begin;
	return n;
}

static void
copy_local(const struct tensor_table *table, uint8_t *weights, uint8_t *packed, bool out)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct tensor *t = &table->items[i];
		size_t n = (size_t)(t->end - t->begin);
		if (t->role != TENSOR_LOCAL)
			continue;
		if (out)
			memcpy(packed, weights + t->begin, n);
		else
			memcpy(weights + t->begin, packed, n);
		packed += n;
	}
}

/* --- training */

/* As a device finds them at the start of a round: the coordinator's variate, and its own. */
static enum err
load_variates(const struct fleet_setup *s, const struct fleet_task *t, struct work *w)
{
	if (!work_variates(w) || t->kind == TASK_EVALUATE)
		return ERR_OK;
	w->own.memory = s->memories[t->device].own;
	w->server.memory = t->base->variate;
	return scaffold_correct(w, NULL);
}

/* A program reads the task as the coordinator would have sent it, and the model's file. */
static enum err
write_message(const struct fleet_setup *s, struct fleet_task *t, struct work *w, struct why *why)
{
	struct task *task = &w->task;
	uint8_t digest[HASH_LEN];
	char name[160];
	struct buf text;

	int n = snprintf(
	    name, sizeof(name), "%s %llu %zu", s->job_hex, (unsigned long long)t->round, t->device);
	hash_sha256(digest, name, (size_t)n);
	hex_encode(task->task, digest, 16);
	memcpy(t->id, task->task, sizeof(t->id));
	buf_init(&text, 2u << 20);
	enum err e = messages_task_encode(&text, task);
	w->text = e ? NULL : strdup(buf_str(&text));
	buf_deinit(&text);
	if (!w->text)
		return err_set(why, e ? e : ERR_NOMEM, "the task cannot be written");
	return work_load(w, t->base->path, 0, why);
}

static enum err
copy_base(const struct fleet_setup *s, const struct fleet_task *t, struct work *w)
{
	w->weights = malloc((size_t)s->table->bytes);
	enum err e = w->weights ? tensor_table_copy(&w->table, s->table) : ERR_NOMEM;
	if (!e)
		memcpy(w->weights, t->base->data, (size_t)s->table->bytes);
	return e;
}

static enum err
make_work(const struct fleet_setup *s, struct fleet_task *t, struct work *w)
{
	struct task *task = &w->task;
	const struct fleet_memory *m = &s->memories[t->device];

	*w = (struct work){.came_at = backoff_now(), .base = t->base->data};
	task->kind = t->kind;
	task->recipe = s->job->recipe;
	task->seed = s->job->seed;
	task->max_examples = s->job->aggregate.max_examples;
	task->round = t->round;
	task->deadline_s = 1e6;
	task->model_bytes = t->base->file_bytes;
	memcpy(task->job, s->job_hex, sizeof(task->job));
	hex_encode(task->model, t->base->id, 32);
	if (t->steps > 0) {
		task->recipe.local.unit = LOCAL_STEPS;
		task->recipe.local.amount = (double)t->steps;
		task->recipe.local.seconds = 0;
	}
	enum err e = s->programs ? write_message(s, t, w, &t->why) : copy_base(s, t, w);
	if (!e && m->local)
		copy_local(s->table, w->weights, m->local, false);
	return e ? e : load_variates(s, t, w);
}

/* The recipe is the job's. */
static void
end_work(struct work *w)
{
	memset(&w->task, 0, sizeof(w->task));
	work_deinit(w);
}

static void
note_report(const struct fleet_setup *s, struct fleet_task *t, const struct report *r)
{
	const struct monitor_spec *m = &s->job->monitor;

	for (size_t i = 0; m->metric == MONITOR_OWN && i < r->metric_count; i++)
		if (strcmp(r->metrics[i].name, m->name) == 0)
			t->own = r->metrics[i].value;
	t->trained = r->trained;
	t->evaluated = r->evaluated;
	t->has_measured = r->has_evaluate;
	t->measured_examples = r->eval_examples;
	t->measured_loss = r->eval_loss;
	t->measured_accuracy = r->eval_accuracy;
}

static void
note(const struct fleet_setup *s, struct fleet_task *t, const struct trainer_out *out)
{
	t->examples = out->finish.examples;
	t->steps_done = out->finish.steps;
	t->normaliser = out->finish.normaliser;
	t->loss = out->finish.loss;
	t->accuracy = out->finish.accuracy;
	t->partial = out->finish.partial;
	if (out->has_report)
		note_report(s, t, &out->report);
}

/* What may happen to one device of many: the others go on. A trainer that does not work at all is for whoever started the simulation. */
static bool
is_given_up(const struct trainer_out *out)
{
	return out->abort == ABORT_NOT_FINITE || out->abort == ABORT_NO_DATA ||
	    out->abort == ABORT_DATA_MISMATCH || out->abort == ABORT_UNKNOWN;
}

/* With the last line that a program said. */
static enum err
fail(struct fleet_task *t, const struct trainer_out *out, enum err e)
{
	const struct why inner = t->why;
	size_t end = strlen(out->log), from;

	while (end > 0 && out->log[end - 1] == '\n')
		end--;
	for (from = end; from > 0 && out->log[from - 1] != '\n';)
		from--;
	return err_set(&t->why, e, "%.100s%s%.*s", inner.text, end > 0 ? ": " : "",
	    (int)(end - from < 140 ? end - from : 140), out->log + from);
}

/* The device's last task is over, whatever became of it. */
static void
begin_keeping(const struct fleet_setup *s, const struct fleet_task *t, char home[PATH_MAX])
{
	struct fleet_memory *m = &s->memories[t->device];

	if (kept_home(home, s, t))
		program_state_refuse(home, m->task);
	memcpy(m->task, t->id, sizeof(m->task));
}

/* A builtin trainer's settings hold no limits of an owner. */
static enum err
run(const struct fleet_setup *s, struct fleet_task *t, struct work *w)
{
	const struct trainer *trainer = trainer_find(s->settings, &s->job->recipe);
	struct fleet_slot *slot = fleet_slots_take(s->slots);
	struct trainer_out *out = calloc(1, sizeof(*out));
	char examples_id[EXAMPLES_FILE_ID] = "";
	struct fleet_hand hand = {.train.count = 0};
	enum err e = out ? fleet_deal_draw(s->deal, t->device, &hand, &t->why) : ERR_NOMEM;

	struct examples_task given = {.drawn = false};
	const uint8_t *id = s->fleet->devices[t->device].id;

	if (!e)
		e = examples_task_init(&given, &w->task, id, &hand.train, &hand.validation);
	slot->data = hand.from;
	char kept[PATH_MAX] = "";
	if (s->programs)
		begin_keeping(s, t, kept);
	struct trainer_in in = {.work = w,
	    .settings = s->settings,
	    .data = &slot->data,
	    .home = slot->home,
	    .kept_home = kept,
	    .copies = true,
	    .device = id,
	    .spawner = slot->programs ? &slot->spawner : NULL,
	    .companions = slot->programs ? &slot->companions : NULL,
	    .stop = s->programs ? s->stop : NULL,
	    .context = s->context};
	trainer_in_give(&in, &given, examples_id);
	if (!e)
		e = trainer->run(&in, out, &t->why);
	if (!e) {
		note(s, t, out);
	} else if (out && is_given_up(out)) {
		t->outcome = FLEET_GAVE_UP;
		t->abort = out->abort;
		e = ERR_OK;
	} else if (out) {
		e = fail(t, out, e);
	}
	if (out)
		trainer_out_deinit(out);
	free(out);
	examples_task_deinit(&given);
	fleet_deal_return(s->deal, &hand);
	fleet_slots_give(s->slots, slot);
	return e;
}

static enum err
take_local(const struct fleet_setup *s, struct fleet_task *t, const struct work *w)
{
	uint64_t n = local_bytes(s->table);

	if (n == 0)
		return ERR_OK;
	struct fleet_memory *m = &s->memories[t->device];
	if (!m->local)
		m->local = malloc((size_t)n);
	if (!m->local)
		return ERR_NOMEM;
	copy_local(s->table, w->weights, m->local, true);
	return ERR_OK;
}

static enum err
take_change(struct fleet_task *t, const struct work *w, size_t n)
{
	const struct codec_elements delta = codec_elements_in(t->delta);
	const struct scaffold_change change = scaffold_change_of(w, &delta, t->steps_done);
	const struct codec_elements values = scaffold_change_values(&change);

	t->change = malloc(n * sizeof(*t->change));
	return t->change ? values.read(values.context, 0, n, t->change) : ERR_NOMEM;
}

/* One that is not finite is none: the device gives the task back. */
static enum err
take_delta(const struct fleet_setup *s, struct fleet_task *t, const struct work *w)
{
	size_t n = (size_t)s->table->elements;
	struct work_delta source;

	t->delta = malloc(n * sizeof(*t->delta));
	if (!t->delta)
		return ERR_NOMEM;
	enum err e = work_delta_open(&source, w, &t->why);
	if (e)
		return e;
	const struct codec_elements values = work_delta_values(&source);
	e = values.read(values.context, 0, n, t->delta);
	work_delta_close(&source);
	if (e == ERR_NUMERIC) {
		free(t->delta);
		t->delta = NULL;
		t->outcome = FLEET_GAVE_UP;
		t->abort = ABORT_NOT_FINITE;
		return ERR_OK;
	}
	if (!e && work_variates(w))
		e = take_change(t, w, n);
	return e ? e : take_local(s, t, w);
}

void
fleet_task_train(const struct fleet_setup *s, struct fleet_task *t)
{
	struct work w;

	t->own = t->loss = t->accuracy = NAN;
	t->e = make_work(s, t, &w);
	if (!t->e)
		t->e = run(s, t, &w);
	if (!t->e && t->outcome == FLEET_DONE && t->kind == TASK_TRAIN)
		t->e = take_delta(s, t, &w);
	end_work(&w);
}

/* --- the hostile */

enum err
fleet_task_attack(const struct fleet_setup *s, struct fleet_task *const *tasks, size_t count)
{
	struct fleet_attack_delta *deltas = calloc(count + 1, sizeof(*deltas));
	size_t n = 0;

	if (!deltas)
		return ERR_NOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct fleet_profile *p = fleet_profile_of(s->fleet, tasks[i]->device);
		if (tasks[i]->delta)
			deltas[n++] = (struct fleet_attack_delta){tasks[i]->delta,
			    tasks[i]->examples, p->attack, p->strength,
			    s->fleet->devices[tasks[i]->device].number, tasks[i]->hostile_done};
	}
	enum err e =
	    n > 0 ? fleet_attack_round(deltas, n, s->table->elements, tasks[0]->round) : ERR_OK;
	for (size_t i = 0, k = 0; !e && i < count; i++) {
		if (!tasks[i]->delta)
			continue;
		tasks[i]->examples = deltas[k].examples;
		tasks[i]->hostile_done = deltas[k++].done;
	}
	free(deltas);
	return e;
}
