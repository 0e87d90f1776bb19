#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "age.h"
#include "archive.h"
#include "audit.h"
#include "bytes.h"
#include "clock.h"
#include "config.h"
#include "engine_inside.h"
#include "err.h"
#include "fault.h"
#include "hex.h"
#include "json.h"
#include "log.h"
#include "models.h"
#include "past_rows.h"
#include "shared.h"
#include "spool.h"
#include "stop.h"
#include "store.h"
#include "tails.h"

/* Deleting a job that is over: kept deltas and reports a few rounds at a time, then all that is left in one transaction, then files. */

/* So many rounds' reports are one transaction: others have their turn in between. */
#define ROUNDS_AT_ONCE 32
#define OLD_AT_ONCE 16

struct delta {
	uint8_t task[16];
	uint64_t bytes;
};

struct deletion {
	struct engine *g;
	const uint8_t *id;
	const char *by, *reason; /* reason: why, if nobody asked for it; or NULL */
	char name[RECIPE_NAME_MAX];
	bool dry;
	struct engine_deletion *out;
	uint64_t from, to, last; /* rounds */
	struct delta *deltas; /* of from..to */
	size_t delta_count, delta_room;
	uint8_t (*models)[32]; /* without a row now */
	size_t model_count, model_room;
	uint64_t model_bytes;
	size_t at;
};

/* --- kept deltas and reports */

static enum err
add_delta(void *ctx, const uint8_t task[16], uint64_t bytes)
{
	struct deletion *d = ctx;

	struct delta *items = bytes_grow(d->deltas, d->delta_count, &d->delta_room, sizeof(*items));
	if (!items)
		return ERR_NOMEM;
	d->deltas = items;
	struct delta *n = &d->deltas[d->delta_count++];
	memcpy(n->task, task, sizeof(n->task));
	n->bytes = bytes;
	return ERR_OK;
}

static enum err
read_deltas(struct store_db *db, void *arg, struct why *why)
{
	struct deletion *d = arg;

	(void)why;
	d->delta_count = 0;
	return store_delete_tasks(db, d->id, d->from, d->to, add_delta, d);
}

static enum err
drop_reports(struct store_db *db, void *arg, struct why *why)
{
	const struct deletion *d = arg;

	(void)why;
	return store_delete_reports(db, d->id, d->from, d->to);
}

/* ERR_NOTFOUND: it is not kept. */
static enum err
drop_delta(struct deletion *d, const struct delta *n)
{
	struct archive *kept = jobs_uses(d->g).archive;

	enum err e = d->dry ? archive_find(kept, n->task) : archive_remove(kept, n->task);
	if (e)
		return e;
	d->out->deltas++;
	d->out->bytes += n->bytes;
	return ERR_OK;
}

/* Files first: while a row names them, asking again finds what was left. */
static enum err
drop_rounds(struct deletion *d, struct why *why)
{
	const struct engine_uses u = jobs_uses(d->g);
	enum err e = store_read(u.store, read_deltas, d, why);

	for (size_t i = 0; i < d->delta_count && !e; i++) {
		e = drop_delta(d, &d->deltas[i]);
		e = e == ERR_NOTFOUND ? ERR_OK : e;
		/* Of a round that a stop left open. */
		if (!d->dry)
			spool_remove(u.spool, d->deltas[i].task);
	}
	FAULT("delete.deltas");
	return e || d->dry || d->delta_count == 0
	    ? e
	    : store_write_reserved(u.store, drop_reports, NULL, d, why);
}

static enum err
drop_all_rounds(struct deletion *d, struct why *why)
{
	enum err e = ERR_OK;

	for (d->from = 1; d->from <= d->last && !e; d->from = d->to + 1) {
		d->to = d->from + ROUNDS_AT_ONCE - 1;
		e = drop_rounds(d, why);
		if (!e && stop_asked(jobs_uses(d->g).stop))
			e = err_set(why, ERR_CLOSED, "the coordinator stops");
	}
	return e;
}

/* --- models */

static enum err
add_model(void *ctx, const struct store_model *m)
{
	struct deletion *d = ctx;

	if (memcmp(m->job, d->id, sizeof(m->job)) != 0)
		return ERR_OK;
	uint8_t(*items)[32] = bytes_grow(d->models, d->model_count, &d->model_room, sizeof(*items));
	if (!items)
		return ERR_NOMEM;
	d->models = items;
	memcpy(d->models[d->model_count++], m->id, 32);
	d->model_bytes += m->bytes;
	return ERR_OK;
}

static enum err
find_models(struct store_db *db, void *arg, struct why *why)
{
	struct deletion *d = arg;

	(void)why;
	/* It may run again, on a full disk. */
	d->out->models -= d->model_count;
	d->out->bytes -= d->model_bytes;
	d->model_count = 0;
	d->model_bytes = 0;
	enum err e = store_model_each(db, add_model, d);
	d->out->models += d->model_count;
	d->out->bytes += d->model_bytes;
	return e;
}

static enum err
drop_model_rows(struct store_db *db, const struct deletion *d)
{
	enum err e = ERR_OK;

	for (size_t i = 0; i < d->model_count && !e; i++)
		e = store_model_delete(db, d->models[i]);
	return e;
}

/* On the store thread: whoever has uploaded it meanwhile has written its row. */
static enum err
drop_file(struct store_db *db, void *arg, struct why *why)
{
	const struct deletion *d = arg;
	struct store_model row;

	(void)why;
	enum err e = store_model_get(db, d->models[d->at], &row);
	return e == ERR_NOTFOUND ? models_delete(jobs_uses(d->g).models, d->models[d->at]) : e;
}

/* What stays behind here goes at the next start: it has no row. */
static void
drop_files(struct deletion *d)
{
	enum err e = ERR_OK;

	for (d->at = 0; d->at < d->model_count && !e && !stop_asked(jobs_uses(d->g).stop); d->at++)
		e = store_write(jobs_uses(d->g).store, drop_file, d, NULL);
	if (e)
		log_event(LOG_LEVEL_WARN, "retention.failed", LOG_S("why", err_name(e)));
}

/* --- the job */

static enum err
audit_deletion(struct store_db *db, const struct deletion *d, struct why *why)
{
	struct json *facts = json_object(), *detail = d->by ? json_object() : NULL;

	json_add_u64(facts, "models", d->out->models);
	json_add_u64(facts, "deltas", d->out->deltas);
	if (detail)
		json_add_string(detail, "by", d->by);
	if (d->reason)
		json_add_string(facts, "reason", d->reason);
	return audit_append(db, jobs_services(d->g),
	    &(struct audit_event){
		.event = RECORD_JOB_DELETED, .job = d->id, .facts = facts, .detail = detail},
	    why);
}

static enum err
write_deletion(struct store_db *db, void *arg, struct why *why)
{
	struct deletion *d = arg;

	enum err e = find_models(db, d, why);
	if (!e)
		e = drop_model_rows(db, d);
	if (!e)
		e = store_delete_job(db, d->id, clock_wall());
	FAULT("delete.rows");
	return e ? e : audit_deletion(db, d, why);
}

/* On the store thread, after the commit. */
static void
forget_job(void *arg)
{
	const struct deletion *d = arg;
	struct engine *g = d->g;

	jobs_lock(g);
	struct job *j = jobs_find(g, d->id);
	if (j)
		jobs_forget(g, j);
	jobs_unlock(g);
	tails_forget_job(jobs_tails(g), d->id);
}

/* Lock held. */
static enum err
claim_job(struct job *j, struct why *why)
{
	if (!j)
		return ERR_NOTFOUND;
	if (states_job_lives(job_facts(j)->state))
		return err_set(why, ERR_STATE, "the job is %s: stop it first",
		    states_job_name(job_facts(j)->state));
	if (job_pace(j)->folds > 0)
		return err_set(
		    why, ERR_STATE, "the job's last round is still being folded: try again");
	if (jobs_is_deleting(j))
		return err_set(why, ERR_STATE, "the job is being deleted");
	return ERR_OK;
}

static enum err
begin(struct deletion *d, struct why *why)
{
	struct engine *g = d->g;

	jobs_lock(g);
	struct job *j = jobs_find(g, d->id);
	enum err e = claim_job(j, why);
	if (!e) {
		jobs_set_deleting(j, !d->dry);
		d->last = job_facts(j)->row.round;
		snprintf(d->name, sizeof(d->name), "%s", job_facts(j)->name);
	}
	jobs_unlock(g);
	return e;
}

/* After a failure it may be tried again; else the folder forgets the job's states, which it alone may. */
static void
end(struct deletion *d, enum err e)
{
	struct engine *g = d->g;

	jobs_lock(g);
	struct job *j = jobs_find(g, d->id);
	if (j)
		jobs_set_deleting(j, false);
	if (!e)
		rounds_forget_later(g);
	jobs_unlock(g);
}

static enum err
delete_job(struct deletion *d, struct why *why)
{
	const struct engine_uses u = jobs_uses(d->g);
	char hex[33];

	enum err e = drop_all_rounds(d, why);
	spool_forget(u.spool, d->id, d->last);
	if (!e && d->out->deltas > 0)
		e = archive_sync(u.archive, why);
	if (!e)
		e = store_write_reserved(u.store, write_deletion, forget_job, d, why);
	if (e)
		return e;
	FAULT("delete.committed");
	drop_files(d);
	hex_encode(hex, d->id, 16);
	log_event(LOG_LEVEL_INFO, "job.deleted", LOG_S("job", hex), LOG_S("name", d->name),
	    LOG_U("models", d->out->models), LOG_U("deltas", d->out->deltas),
	    LOG_U("bytes", d->out->bytes), LOG_S("by", d->by ? d->by : ""),
	    LOG_S("why", d->reason ? d->reason : "asked for"));
	return ERR_OK;
}

static enum err
run(struct deletion *d, struct why *why)
{
	*d->out = (struct engine_deletion){.models = 0};
	enum err e = begin(d, why);
	if (!e && d->dry) {
		e = drop_all_rounds(d, why);
		if (!e)
			e = store_read(jobs_uses(d->g).store, find_models, d, why);
	} else if (!e) {
		e = delete_job(d, why);
		end(d, e);
	}
	free(d->deltas);
	free(d->models);
	return e;
}

enum err
engine_delete(struct engine *g, const uint8_t id[16], const char *by, bool dry,
    struct engine_deletion *out, struct why *why)
{
	struct deletion d = {.g = g, .id = id, .by = by, .dry = dry, .out = out};

	return run(&d, why);
}

/* --- by their age */

static void
date_ends(struct engine *g)
{
	double now;

	if (!age_now(jobs_uses(g).age, &now))
		return;
	jobs_lock(g);
	jobs_date_ends(g, now);
	jobs_unlock(g);
}

static bool
find_old(struct engine *g, double now, double age, uint8_t id[16], double *ended_at)
{
	unsigned seen = 0;
	bool found = false;

	jobs_lock(g);
	for (struct job *j = jobs_first(g); j && !found; j = jobs_next(g, j, &seen)) {
		found = !job_facts(j)->gone && !states_job_lives(job_facts(j)->state) &&
		    job_facts(j)->ended_at < now - age && job_pace(j)->folds == 0 &&
		    !jobs_is_deleting(j);
		if (found) {
			memcpy(id, job_facts(j)->id, 16);
			*ended_at = job_facts(j)->ended_at;
		}
	}
	jobs_unlock(g);
	return found;
}

/* *found: there was one, and the clock is believed as it is looked at. */
static enum err
delete_oldest(struct engine *g, double age, bool *found, struct why *why)
{
	struct engine_deletion gone;
	char reason[96];
	uint8_t id[16];
	double now, ended_at = NAN;

	const bool believed = age_now(jobs_uses(g).age, &now);

	if (!believed)
		log_event(
		    LOG_LEVEL_DEBUG, "retention.waits", LOG_S("why", "the clock is in doubt"));
	*found = believed && find_old(g, now, age, id, &ended_at);
	if (!*found)
		return ERR_OK;
	snprintf(reason, sizeof(reason),
	    "it ended %.1f hours ago: [retention] ended_jobs is %.0f s", (now - ended_at) / 3600,
	    age);
	struct deletion d = {.g = g, .id = id, .reason = reason, .out = &gone};
	return run(&d, why);
}

void
engine_delete_old(struct engine *g)
{
	const struct config *c = shared_take(jobs_uses(g).config);
	double age = (double)c->ended_jobs_s;
	struct why why = {""};
	enum err e = ERR_OK;
	bool found = true;

	shared_give(jobs_uses(g).config, c);
	date_ends(g);
	if (age == 0)
		return;
	for (unsigned i = 0; i < OLD_AT_ONCE && !e && found; i++)
		e = delete_oldest(g, age, &found, &why);
	if (e && e != ERR_CLOSED)
		log_event(LOG_LEVEL_WARN, "retention.failed",
		    LOG_S("why", why.text[0] ? why.text : err_name(e)));
}
