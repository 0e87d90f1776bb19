#include "views.h"
#include "abort_reason.h"
#include "engine.h"
#include "exchange.h"
#include "forecast.h"
#include "job.h"
#include "json.h"
#include "override.h"
#include "reserve.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "device_status.h"
#include "engine.h"
#include "hex.h"
#include "registry.h"
#include "services.h"
#include "states.h"
#include "stuck.h"
#include "tails.h"
#include "task_kind.h"
#include "tasks.h"

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
	if (o->is_central)
		json_add_string(v, "waits_for", "the report of an evaluator's program");
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
device_status_json(const struct device_status *s)
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
add_status(struct json *v, const struct job_view *job)
{
	if (job->for_device)
		return;
	if (states_job_lives(job->state))
		json_add(v, "devices", device_status_json(&job->status));
	else
		json_add_null(v, "devices");
}

static void
add_stuck(struct json *v, const struct job_view *job)
{
	if (job->for_device)
		return;
	if (!job->stuck.kind) {
		json_add_null(v, "stuck");
		return;
	}
	struct json *stuck = json_object();
	json_add_string(stuck, "kind", stuck_name(job->stuck.kind));
	json_add_string(stuck, "reason", job->stuck.reason);
	json_add_string(stuck, "advice", stuck_advice(job->stuck.kind));
	json_add_seconds(stuck, "since", job->stuck_since);
	json_add(v, "stuck", stuck);
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
	add_status(v, job);
	add_stuck(v, job);
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

/* The id of a client that is a device, which may see only jobs that select it; NULL for a client that may see all jobs. */
static const uint8_t *
seen_by(const struct exchange *x)
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
		slice->device = seen_by(x);
	exchange_list(x, head, "jobs", fill_jobs, slice);
}

/* Adds a device's id and its present name. */
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
	size_t count = tasks_tails(g, job, tails);
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

static void
add_contact(struct json *v, struct registry *registry, const uint8_t id[32])
{
	struct registry_view device;

	if (registry_get(registry, id, &device) == ERR_OK)
		json_add_seconds(v, "last_contact", device.seen.last_contact);
}

void
views_hands(struct json *job, const struct services *s, const uint8_t id[16])
{
	struct json *invited = json_array(), *silent = json_array();
	struct engine_hands hands;

	engine_hands(s->engine, id, &hands);
	for (size_t i = 0; i < hands.working; i++) {
		struct json *v = json_object();
		add_device(v, s->registry, hands.works[i].device);
		json_add_seconds(v, "given_at", clock_wall() - hands.works[i].seconds);
		add_contact(v, s->registry, hands.works[i].device);
		json_push(invited, v);
	}
	for (size_t i = 0; i < hands.silent; i++) {
		struct json *v = json_object();
		add_device(v, s->registry, hands.silents[i]);
		add_contact(v, s->registry, hands.silents[i]);
		json_push(silent, v);
	}
	json_add(job, "invited", invited);
	json_add(job, "silent", silent);
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
	size_t count = tasks_refusals(s->engine, job, all);
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
	size_t count = tasks_refusals_of(s->engine, device, all);
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
		json_add_seconds(v, "seconds", fmax(clock_wall() - r->opened_at, 0));
	} else {
		json_add_seconds(v, "closed_at", r->closed_at);
		json_add_seconds(v, "seconds", fmax(r->closed_at - r->opened_at, 0));
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
	bool found = engine_job(x->services->engine, id, seen_by(x), out);
	exchange_looked(x, out->read_bytes / VIEWS_BYTES_PER_ROW);
	if (!found)
		exchange_problem(x, PROBLEM_UNKNOWN_JOB, "no such job, or not for this device");
	return found;
}

/* --- the disk */

struct json *
views_forecast(const struct usage *u, const struct job_view *job)
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
				json_push(list, views_forecast(u, &slice.jobs[i]));
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
