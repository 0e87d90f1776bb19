#include "views.h"
#include "reserve.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "hex.h"
#include "registry.h"
#include "task_kind.h"

#define THINGS_PER_ROW 8 /* jobs that are passed by: what they cost of what a row does */
#define FILES_PER_ROW 8 /* that are asked for their sizes: what they cost of what a row does */

static void
add_hex(struct json *v, const char *key, const uint8_t *bytes, size_t len)
{
	char hex[65];

	hex_encode(hex, bytes, len);
	json_add_string(v, key, hex);
}

/* --- jobs */

static struct json *
metric_json(const struct store_metric *m)
{
	struct json *v = json_object();

	json_add_u64(v, "examples", m->examples);
	json_add_double(v, "loss", m->loss);
	json_add_double(v, "accuracy", m->accuracy);
	return v;
}

static struct json *
guard_json(const struct guard_view *g)
{
	struct json *v = json_object();

	json_add_u64(v, "bad", g->bad);
	json_add_u64(v, "rollbacks", g->rollbacks);
	json_add_u64(v, "base_round", g->base_round);
	if (!g->has_best) {
		json_add_null(v, "best");
		return v;
	}
	struct json *best = json_object();
	json_add_u64(best, "round", g->best_round);
	add_hex(best, "model", g->best_model, 32);
	json_add_double(best, "value", g->best_value);
	json_add(v, "best", best);
	return v;
}

static void
add_monitor(struct json *v, const struct job_view *job)
{
	struct json *monitor = json_object(), *best = json_object();
	char word[JOB_MONITOR_WORD];

	if (job->monitor.metric == MONITOR_NONE) {
		json_free(monitor);
		json_add_null(v, "monitor");
	} else {
		job_monitor_word(word, &job->monitor);
		json_add_string(monitor, "metric", word);
		json_add_string(monitor, "mode", job->monitor.rises ? "max" : "min");
		json_add(v, "monitor", monitor);
	}
	if (!job->has_best) {
		json_free(best);
		json_add_null(v, "best");
		return;
	}
	json_add_u64(best, "round", job->best.round);
	add_hex(best, "model", job->best.model, 32);
	json_add_double(best, "value", job->best.value);
	json_add(v, "best", best);
}

static struct json *
open_json(const struct job_view *job)
{
	const struct open_view *o = &job->open;
	struct json *v = json_object();

	json_add_u64(v, "round", job->round);
	json_add_string(v, "state", o->state);
	json_add_u64(v, "reports", o->reports);
	json_add_u64(v, "invited", o->invited);
	json_add_u64(v, "goal", o->goal);
	json_add_u64(v, "quorum", o->quorum);
	json_add_u64(v, "reopened", o->reopened);
	json_add_string(v, "mode", job_round_mode(o->mode));
	json_add_u64(v, "max_staleness", o->max_staleness);
	json_add_u64(v, "early", o->early);
	if (o->mode == ROUND_MODE_BUFFERED)
		json_add_u64(v, "concurrency", o->concurrency);
	json_add_u64(v, "bytes_up", o->up_bytes);
	json_add_seconds(v, "opened_at", o->opened_at_seconds);
	json_add_seconds(v, "deadline_at", clock_wall() + o->deadline_seconds);
	json_add_string(v, "kind", task_kind_name(o->evaluates ? TASK_EVALUATE : TASK_TRAIN));
	return v;
}

static void
add_owner(struct json *v, const struct job_view *job)
{
	static const uint8_t nobody[32];

	if (job->for_device)
		return;
	if (memcmp(job->owner, nobody, sizeof(nobody)) == 0)
		json_add_null(v, "owner");
	else
		add_hex(v, "owner", job->owner, 32);
	json_add_string(v, "owner_name", job->owner_name);
}

static void
add_count(struct json *v, const char *word, uint32_t count)
{
	if (count > 0)
		json_add_u64(v, *word ? word : "other", count);
}

static struct json *
standing_json(const struct standing *s)
{
	struct json *v = json_object(), *waiting = json_object(), *gave_up = json_object();

	for (enum wait_reason r = WAIT_NONE; r < WAIT_UNKNOWN; r++)
		add_count(waiting, wait_reason_name(r), s->waiting[r]);
	for (enum abort_reason r = ABORT_NONE; r <= ABORT_UNKNOWN; r++)
		add_count(gave_up, abort_reason_name(r), s->gave_up[r]);
	json_add_u64(v, "ready", s->ready);
	json_add(v, "waiting", waiting);
	json_add(v, "gave_up", gave_up);
	return v;
}

static void
add_standing(struct json *v, const struct job_view *job)
{
	if (job->for_device)
		return;
	if (states_job_lives(job->state))
		json_add(v, "devices", standing_json(&job->standing));
	else
		json_add_null(v, "devices");
}

static void
add_parts(struct json *v, const struct job_view *job)
{
	if (job->metric.known) {
		struct json *m = metric_json(&job->metric);
		json_add_u64(m, "round", job->metric_round);
		json_add(v, "metric", m);
	} else {
		json_add_null(v, "metric");
	}
	add_monitor(v, job);
	if (job->is_guarded)
		json_add(v, "guard", guard_json(&job->guard));
	else
		json_add_null(v, "guard");
	json_add_seconds(v, "created_at", job->created_at_seconds);
	json_add_seconds(v, "ended_at", job->ended_at_seconds);
	add_owner(v, job);
	add_standing(v, job);
	if (job->is_open)
		json_add(v, "open", open_json(job));
	else
		json_add_null(v, "open");
}

struct json *
views_job(const struct job_view *job)
{
	struct json *v = json_object();

	add_hex(v, "job", job->id, 16);
	json_add_string(v, "name", job->name);
	json_add_string(
	    v, "kind", task_kind_name(job->only_evaluates ? TASK_EVALUATE : TASK_TRAIN));
	json_add_string(v, "state", states_job_name(job->state));
	json_add_string(v, "reason", job->reason);
	json_add_double(v, "priority", (double)job->priority);
	if (job->share > 0)
		json_add_u64(v, "share", job->share);
	else
		json_add_null(v, "share");
	json_add_u64(v, "round", job->round);
	json_add_u64(v, "rounds_committed", job->rounds_committed);
	add_hex(v, "model", job->model, 32);
	json_add_u64(v, "model_bytes", job->model_bytes);
	if (job->parameters)
		json_add_u64(v, "parameters", job->parameters);
	else
		json_add_null(v, "parameters");
	add_parts(v, job);
	return v;
}

struct json *
views_overrides(const struct override_set *o, const struct job_spec *document)
{
	const struct override_set none = {.state = {OVERRIDE_ABSENT}};
	struct json *all = json_object();
	struct job_terms terms;

	override_terms(&terms, document, &none);
	for (enum override_key key = 0; key < OVERRIDE_KEYS; key++) {
		if (o->state[key] != OVERRIDE_GIVEN)
			continue;
		struct json *v = json_object();
		json_add_double(v, "value", o->value[key]);
		json_add_double(v, "document", override_value(&terms, key));
		json_add(all, override_path(key), v);
	}
	return all;
}

static void __attribute__((format(printf, 2, 3))) warn(struct json *list, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_push(list, json_new_string(text));
}

static void
warn_of_examples(struct json *list, const struct engine_reach *r)
{
	if (r->drawn > 0)
		warn(list,
		    "%" PRIu64 " of the %" PRIu64 " devices with the data have more examples of it "
		    "than aggregate.max_examples (%" PRIu64 "): each draws that many of its own",
		    r->drawn, r->with_data, r->most);
	if (r->too_many > 0)
		warn(list,
		    "%" PRIu64 " of the %" PRIu64 " devices with the data have more examples of it "
		    "than aggregate.max_examples (%" PRIu64
		    "), and agents that draw no share of them: they get no task "
		    "(too-many-examples)",
		    r->too_many, r->with_data, r->most);
}

struct json *
views_warnings(const struct engine_reach *r, const char *name)
{
	struct json *list = json_array();

	if (hex_like_id(name))
		warn(list,
		    "the name \"%s\" looks like an id: where another job's id begins so, the word "
		    "is refused",
		    name);

	if (r->goal > r->devices)
		warn(list, "round.goal is %u, and %" PRIu64 " active devices may work on it: %s",
		    r->goal, r->devices,
		    r->quorum > r->devices ? "no round can close before more of them join"
					   : "every round waits for its grace time or deadline");
	if (r->devices > 0 && r->heard == 0)
		warn(list,
		    "none of the %" PRIu64 " devices that may work on it has asked for work lately",
		    r->devices);
	else if (r->heard > 0 && r->with_data == 0)
		warn(list,
		    "nobody has the data: none of the %" PRIu64
		    " devices that asked for work lately offers a data set \"%s\" with %" PRIu64
		    " examples or more",
		    r->heard, r->data, r->examples);
	if (r->heard > 0 && r->with_trainer == 0)
		warn(list,
		    "nobody has the trainer: none of the %" PRIu64
		    " devices that asked for work lately offers a trainer \"%s\"",
		    r->heard, r->trainer);
	warn_of_examples(list, r);
	if (r->without_figures > 0)
		warn(list,
		    "%" PRIu64 " of the %" PRIu64
		    " devices with the trainer \"%s\" give none of the "
		    "figures that evaluate.figures asks for: they get no task (no-figures)",
		    r->without_figures, r->with_trainer, r->trainer);
	return list;
}

const uint8_t *
views_seen_by(const struct exchange *x)
{
	return x->who.roles & ROLE_READERS ? NULL : x->who.device;
}

static enum err
fill_jobs(struct exchange *x, void *cursor, struct why *why)
{
	struct engine_slice *slice = cursor;

	(void)why;
	while (!exchange_list_full(x)) {
		if (!engine_jobs(x->services->engine, slice))
			return ERR_OK;
		exchange_looked(x, slice->count + (slice->looked - slice->count) / THINGS_PER_ROW);
		for (size_t i = 0; i < slice->count; i++)
			exchange_list_add(x, views_job(&slice->jobs[i]));
	}
	return ERR_AGAIN;
}

void
views_jobs(struct exchange *x, struct json *head)
{
	struct engine_slice *slice = calloc(1, sizeof(*slice));

	if (slice)
		slice->device = views_seen_by(x);
	exchange_list(x, head, "jobs", fill_jobs, slice);
}

/* With the name that it has by now. */
static void
add_device(struct json *v, struct registry *registry, const uint8_t id[32])
{
	struct registry_view device;

	add_hex(v, "device", id, 32);
	if (registry_get(registry, id, &device) == ERR_OK)
		json_add_string(v, "name", device.row.name);
}

struct json *
views_failures(struct engine *g, struct registry *registry, const uint8_t job[16])
{
	struct tail tails[TAILS_OF_JOB];
	size_t count = engine_tails(g, job, tails);
	struct json *list = json_array();

	for (size_t i = 0; i < count; i++) {
		const struct tail *t = &tails[i];
		struct json *v = json_object();
		add_device(v, registry, t->device);
		json_add_u64(v, "round", t->round);
		json_add_string(v, "reason", t->reason);
		json_add_seconds(v, "at", t->at_seconds);
		json_add_string(v, "log", t->text ? t->text : "");
		json_push(list, v);
		free(t->text);
	}
	return list;
}

static struct json *
refusal_json(const struct engine_refusal *r)
{
	struct json *v = json_object();

	json_add_string(v, "reason", abort_reason_name(ABORT_OUT_OF_MEMORY));
	json_add_string(v, "kind", task_kind_name(r->kind));
	json_add_u64(v, "needed_bytes", r->needed_bytes);
	json_add_u64(v, "memory_bytes", r->memory_bytes);
	json_add_seconds(v, "at", r->at);
	return v;
}

struct json *
views_refusals(const struct services *s, const uint8_t job[16])
{
	struct engine_refusal all[ENGINE_REFUSALS];
	size_t count = engine_refusals(s->engine, job, all);
	struct json *list = json_array();

	for (size_t i = 0; i < count; i++) {
		struct json *v = refusal_json(&all[i]);
		add_device(v, s->registry, all[i].device);
		json_push(list, v);
	}
	return list;
}

struct json *
views_refusals_of(const struct services *s, const uint8_t device[32])
{
	struct engine_refusal all[ENGINE_REFUSALS];
	size_t count = engine_refusals_of(s->engine, device, all);
	struct json *list = json_array();
	struct job_view job;

	for (size_t i = 0; i < count; i++) {
		struct json *v = refusal_json(&all[i]);
		add_hex(v, "job", all[i].job, sizeof(all[i].job));
		if (engine_job(s->engine, all[i].job, NULL, &job))
			json_add_string(v, "name", job.name);
		json_push(list, v);
	}
	return list;
}

/* --- rounds */

static void
add_ends(struct json *v, const struct store_round *r)
{
	json_add_seconds(v, "opened_at", r->opened_at);
	if (states_round_is_open(r->state)) {
		json_add_null(v, "closed_at");
		json_add_seconds(v, "seconds", clock_wall() - r->opened_at);
	} else {
		json_add_seconds(v, "closed_at", r->closed_at);
		json_add_seconds(v, "seconds", r->closed_at - r->opened_at);
	}
}

struct json *
views_round(const struct store_round *r)
{
	struct json *v = json_object();

	json_add_u64(v, "round", r->round);
	json_add_string(v, "state", states_round_name(r->state));
	add_hex(v, "base", r->base, 32);
	if (states_round_is_open(r->state))
		json_add_null(v, "model");
	else
		add_hex(v, "model", r->model, 32);
	json_add_u64(v, "reports", r->reports);
	json_add_u64(v, "invited", r->invited);
	json_add_u64(v, "aborted", r->aborted);
	json_add_u64(v, "reopened", r->reopened);
	json_add_u64(v, "goal", r->goal);
	json_add_u64(v, "examples", r->examples);
	json_add_double(v, "loss", r->loss);
	json_add_double(v, "accuracy", r->accuracy);
	json_add_u64(v, "bytes_up", r->bytes_up);
	json_add_u64(v, "bytes_down", r->bytes_down);
	json_add_double(v, "norm", r->norm);
	add_ends(v, r);
	if (r->evaluate.known)
		json_add(v, "evaluate", metric_json(&r->evaluate));
	else
		json_add_null(v, "evaluate");
	json_add_string(v, "reason", r->reason);
	return v;
}

/* --- which job */

bool
views_find_id(struct exchange *x, uint8_t id[16])
{
	if (hex_decode(id, 16, x->param[0], strlen(x->param[0])))
		return true;
	exchange_problem(x, PROBLEM_UNKNOWN_JOB, "a job id is 32 lower-case hex digits");
	return false;
}

bool
views_find_job(struct exchange *x, uint8_t id[16], struct job_view *out)
{
	if (!views_find_id(x, id))
		return false;
	bool found = engine_job(x->services->engine, id, views_seen_by(x), out);
	exchange_looked(x, out->read_bytes / VIEWS_BYTES_PER_ROW);
	if (!found)
		exchange_problem(x, PROBLEM_UNKNOWN_JOB, "no such job, or not for this device");
	return found;
}

/* --- the disk */

static struct json *
forecast_json(const struct usage *u, const struct job_view *job)
{
	struct job_forecast f = usage_forecast(u, job);
	uint64_t bytes = usage_bytes(&f);
	struct json *v = json_object();

	add_hex(v, "job", job->id, 16);
	json_add_string(v, "name", job->name);
	if (f.rounds_left > 0)
		json_add_u64(v, "rounds_left", f.rounds_left);
	else
		json_add_null(v, "rounds_left");
	json_add_u64(v, "models", f.models_bytes);
	json_add_u64(v, "spool", f.spool_bytes);
	json_add_u64(v, "deltas", f.deltas_bytes);
	json_add_u64(v, "database", f.database_bytes);
	json_add_u64(v, "bytes", bytes);
	json_add_bool(v, "fits", usage_fits(u, bytes));
	return v;
}

static struct json *
forecasts_json(const struct services *s, const struct usage *u)
{
	struct engine_slice slice = {.device = NULL};
	struct json *list = json_array();

	while (engine_jobs(s->engine, &slice))
		for (size_t i = 0; i < slice.count; i++)
			if (slice.jobs[i].is_open)
				json_push(list, forecast_json(u, &slice.jobs[i]));
	return list;
}

void
views_disk(struct json *status, struct exchange *x)
{
	const struct services *s = x->services;
	struct json *disk = json_object(), *forecast = json_object();
	struct usage u;

	json_add(status, "disk", disk);
	json_add(status, "forecast", forecast);
	if (usage_read(s, &u, NULL)) {
		json_add(forecast, "jobs", json_array());
		return;
	}
	exchange_looked(x, u.model_files / FILES_PER_ROW);
	json_add_u64(disk, "free", u.free_bytes);
	json_add_u64(disk, "total", u.total_bytes);
	json_add_u64(disk, "models", u.models_bytes);
	json_add_u64(disk, "model_files", u.model_files);
	json_add_u64(disk, "spool", u.spool_bytes);
	json_add_u64(disk, "kept", u.kept_bytes);
	json_add_u64(disk, "database", u.database_bytes);
	json_add_u64(disk, "reserve", s->reserve ? reserve_held(s->reserve) : 0);
	json_add_u64(forecast, "bytes", u.need_bytes);
	json_add_bool(forecast, "fits", usage_fits(&u, u.need_bytes));
	json_add(forecast, "jobs", forecasts_json(s, &u));
}

/* --- what would come of a document */

static struct json *
reach_json(const struct engine_reach *r)
{
	struct json *v = json_object();

	json_add_u64(v, "devices", r->devices);
	json_add_u64(v, "heard", r->heard);
	json_add_u64(v, "with_data", r->with_data);
	json_add_u64(v, "with_trainer", r->with_trainer);
	json_add_u64(v, "drawn", r->drawn);
	json_add_u64(v, "too_many_examples", r->too_many);
	json_add_u64(v, "without_figures", r->without_figures);
	return v;
}

struct json *
views_trial(const struct engine_trial *t, const struct services *s)
{
	struct json *v = json_object();
	struct usage u;

	add_hex(v, "job", t->job.id, 16);
	json_add_string(v, "name", t->job.name);
	json_add_bool(v, "exists", t->exists);
	json_add_u64(v, "parameters", t->job.parameters);
	json_add_u64(v, "model_bytes", t->job.model_bytes);
	json_add(v, "reach", reach_json(&t->reach));
	json_add(v, "warnings", views_warnings(&t->reach, t->job.name));
	if (usage_read(s, &u, NULL) == ERR_OK)
		json_add(v, "forecast", forecast_json(&u, &t->job));
	return v;
}
