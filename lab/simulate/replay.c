#include "replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "hex.h"
#include "play_inside.h"
#include "worker.h"

struct replay {
	struct simulate_play p; /* its setup and its coordinator */
	const struct simulate_records *records;
	struct simulate_model **models; /* that later rounds begin from */
	size_t model_count, model_room;
	/* of the round in hand */
	struct fleet_task *tasks;
	struct fleet_task **list; /* all of them; and those of one pass */
	size_t count;
};

/* --- models */

static struct simulate_model *
find_model(const struct replay *r, const uint8_t id[32])
{
	for (size_t i = 0; i < r->model_count; i++)
		if (memcmp(r->models[i]->base.id, id, 32) == 0)
			return r->models[i];
	return NULL;
}

/* Does a round from number `from` of the records on begin with it? */
static bool
is_wanted(const struct replay *r, size_t from, const uint8_t id[32])
{
	uint64_t most = r->p.job->round.max_staleness;

	for (size_t i = from; i < r->records->count && i <= from + most + 1; i++)
		for (size_t k = 0; k < r->records->items[i].count; k++)
			if (memcmp(r->records->items[i].entries[k].base, id, 32) == 0)
				return true;
	return false;
}

/* The base of the next round, and those that are still wanted. */
static enum err
keep_models(struct replay *r, size_t next)
{
	struct simulate_model *base = r->p.coordinator.base;
	size_t n = 0;

	for (size_t i = 0; i < r->model_count; i++) {
		struct simulate_model *m = r->models[i];
		if (is_wanted(r, next, m->base.id))
			r->models[n++] = m;
		else
			simulate_model_drop(m);
	}
	r->model_count = n;
	if (find_model(r, base->base.id))
		return ERR_OK;
	void *grown = bytes_grow(r->models, n, &r->model_room, sizeof(struct simulate_model *));
	if (!grown)
		return ERR_NOMEM;
	r->models = grown;
	r->models[r->model_count++] = simulate_model_take(base);
	return ERR_OK;
}

/* --- the devices' work */

static void
train_one(void *arg, unsigned i)
{
	struct replay *r = arg;

	fleet_task_train(&r->p.setup, r->list[i]);
}

static void
encode_one(void *arg, unsigned i)
{
	struct replay *r = arg;

	fleet_task_encode(&r->p.setup, r->list[i]);
}

static enum err
prepare_task(
    struct replay *r, struct fleet_task *t, const struct simulate_entry *from, struct why *why)
{
	const struct simulate_model *m = find_model(r, from->base);
	char hex[65];

	*t = (struct fleet_task){.device = fleet_find(r->p.setup.fleet, from->device),
	    .round = from->round,
	    .kind = TASK_TRAIN};
	hex_encode(hex, from->device, 32);
	if (t->device == SIZE_MAX)
		return err_set(why, ERR_NOTFOUND,
		    "the fleet has no device %s: name it in --fleet, in the order of shards", hex);
	if (!m)
		return err_set(why, ERR_CORRUPT,
		    "device %.12s began from a model that did not come out of these rounds", hex);
	t->base = &m->base;
	/* What the clock, or the coordinator, said then. */
	if (from->partial || r->p.job->recipe.local.unit == LOCAL_SIZED)
		t->steps = from->steps;
	return ERR_OK;
}

static enum err
judge_task(const struct replay *r, struct fleet_task *t, const struct simulate_entry *from,
    struct why *why)
{
	char hex[65];

	(void)r;
	if (t->e) {
		*why = t->why;
		return t->e;
	}
	hex_encode(hex, from->device, 32);
	if (t->outcome == FLEET_GAVE_UP)
		return err_set(why, ERR_CORRUPT, "device %.12s gives up in round %llu: %.150s", hex,
		    (unsigned long long)from->round, t->why.text);
	if (t->outcome == FLEET_REFUSED)
		return err_set(why, ERR_CORRUPT, "device %.12s makes a delta that is refused: %s",
		    hex, t->refused);
	if (from->partial)
		t->examples = from->examples;
	return ERR_OK;
}

/* A device that has several deltas in the round made one after the other: those of one pass are of different devices. */
static size_t
next_pass(struct replay *r, const struct simulate_record *record, size_t pass)
{
	size_t n = 0, nth = 0;

	for (size_t i = 0; i < record->count; i++) {
		bool again = i > 0 &&
		    memcmp(record->entries[i].device, record->entries[i - 1].device, 32) == 0;
		nth = again ? nth + 1 : 0;
		if (nth == pass)
			r->list[n++] = &r->tasks[i];
	}
	return n;
}

static enum err
work(struct replay *r, const struct simulate_record *record, struct why *why)
{
	unsigned threads = r->p.o->setup.threads;
	unsigned trainers = r->p.setup.programs ? r->p.o->jobs : threads;
	enum err e = ERR_OK;
	size_t n;

	for (size_t i = 0; !e && i < record->count; i++)
		e = prepare_task(r, &r->tasks[i], &record->entries[i], why);
	for (size_t pass = 0; !e && (n = next_pass(r, record, pass)) > 0; pass++) {
		worker_parallel(trainers, (unsigned)n, train_one, r);
		if (r->p.o->setup.hostile)
			e = fleet_task_attack(&r->p.setup, r->list, n);
		worker_parallel(threads, (unsigned)n, encode_one, r);
		for (size_t i = 0; i < n; i++) {
			size_t at = (size_t)(r->list[i] - r->tasks);
			if (!e)
				e = judge_task(r, r->list[i], &record->entries[at], why);
			if (!e)
				fleet_task_accepted(&r->p.setup, r->list[i]);
			free(r->list[i]->delta);
			r->list[i]->delta = NULL;
		}
	}
	return e;
}

/* --- a round */

static enum err
fold(struct replay *r, const struct simulate_record *record, struct simulate_round *out,
    struct why *why)
{
	char want[65], got[65];

	for (size_t i = 0; i < record->count; i++)
		r->list[i] = &r->tasks[i];
	const struct simulate_reports in = {r->list, record->count, record->committed ? 0 : 1};
	*out = (struct simulate_round){
	    .number = record->round, .last = record == &r->records->items[r->records->count - 1]};
	r->p.coordinator.quorum = cmd_verify_history_quorum(&record->terms, r->p.job);
	enum err e = simulate_coordinator_fold(&r->p.coordinator, out, &in, why);
	if (e)
		return e;
	if (!out->failed == record->committed &&
	    (out->failed || memcmp(out->model, record->model, 32) == 0))
		return ERR_OK;
	hex_encode(want, record->model, 32);
	hex_encode(got, out->model, 32);
	return err_set(why, ERR_CORRUPT,
	    "round %llu: model %.16s... comes out, the record says %.16s...",
	    (unsigned long long)record->round, got, want);
}

static void
tell(struct replay *r, const struct simulate_record *record, struct simulate_line *line)
{
	struct simulate_result *out = r->p.out;

	line->invited = (uint32_t)record->count;
	for (size_t i = 0; i < record->count; i++) {
		line->bytes_up += manifest_body_bytes(r->tasks[i].len);
		r->p.crowd.people[r->tasks[i].device].folded += record->committed;
		if (record->committed)
			simulate_play_stale(out, line, record->round - r->tasks[i].round);
	}
	out->rounds++;
	out->failed += !record->committed;
	out->reports += record->count;
	out->bytes_up += line->bytes_up;
	if (line->round.evaluated) {
		out->last_accuracy = line->round.accuracy;
		out->last_loss = line->round.loss;
	}
	r->p.o->line(r->p.o->context, line);
}

static enum err
repeat(struct replay *r, size_t at, struct why *why)
{
	const struct simulate_record *record = &r->records->items[at];
	struct simulate_line line = {.bytes_up = 0};

	r->tasks = calloc(record->count + 1, sizeof(*r->tasks));
	r->list = calloc(record->count + 1, sizeof(void *));
	enum err e = r->tasks && r->list ? keep_models(r, at) : ERR_NOMEM;
	if (!e)
		e = work(r, record, why);
	if (!e)
		e = fold(r, record, &line.round, why);
	if (!e)
		tell(r, record, &line);
	for (size_t i = 0; r->tasks && i < record->count; i++) {
		if (!e && record->committed)
			fleet_task_committed(&r->p.setup, &r->tasks[i]);
		fleet_task_deinit(&r->tasks[i]);
	}
	free(r->tasks);
	free(r->list);
	return e;
}

static enum err
run(struct replay *r, struct why *why)
{
	enum err e = ERR_OK;

	if (r->records->items[0].round != 1)
		return err_set(why, ERR_NOTFOUND, "the records begin after the job's first round");
	for (size_t i = 0; !e && i < r->records->count; i++) {
		if (r->p.o->stop && r->p.o->stop(r->p.o->context)) {
			simulate_play_end(&r->p, SIMULATE_BROKEN_OFF, "broken off");
			return ERR_OK;
		}
		e = repeat(r, i, why);
	}
	if (!e)
		simulate_play_end(&r->p, SIMULATE_DONE,
		    "%zu rounds repeated: every model is the same to the bit", r->records->count);
	return e;
}

enum err
simulate_replay(struct simulate_result *out, const struct simulate_options *options,
    const struct simulate_records *records, const char *save, struct why *why)
{
	struct replay r = {
	    .p = {.o = options, .job = options->setup.job, .out = out}, .records = records};

	simulate_result_init(out);
	enum err e = simulate_play_open(&r.p, why);
	if (!e)
		e = run(&r, why);
	if (!e)
		e = simulate_play_books(&r.p, why);
	if (!e && save)
		e = simulate_coordinator_save(&r.p.coordinator, save, why);
	for (size_t i = 0; i < r.model_count; i++)
		simulate_model_drop(r.models[i]);
	free(r.models);
	simulate_play_close(&r.p);
	return e;
}
