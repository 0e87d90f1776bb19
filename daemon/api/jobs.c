#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "engine.h"
#include "hex.h"
#include "manifest.h"
#include "metric_rows.h"
#include "num.h"
#include "registry.h"
#include "store.h"
#include "views.h"

#define ROUNDS_PAGE 1000

static bool
read_id(struct exchange *x, uint8_t id[16])
{
	if (hex_decode(id, 16, x->param[0], strlen(x->param[0])))
		return true;
	exchange_problem(x, PROBLEM_UNKNOWN_JOB, "a job id is 32 lower-case hex digits");
	return false;
}

/* The job, or a problem response and false. */
static bool
find_job(struct exchange *x, uint8_t id[16], struct job_view *out)
{
	if (!read_id(x, id))
		return false;
	bool found = engine_job(x->services->engine, id, views_seen_by(x), out);
	if (!found)
		exchange_problem(x, PROBLEM_UNKNOWN_JOB, "no such job, or not for this device");
	return found;
}

void
api_jobs_list(struct exchange *x)
{
	views_jobs(x, NULL);
}

static void
show_job(struct exchange *x, unsigned status, const uint8_t id[16])
{
	struct job_view job;

	/* Another submission of the same document is at this moment between its row and its place in the list. */
	if (engine_job(x->services->engine, id, NULL, &job))
		exchange_json(x, status, views_job(&job));
	else
		exchange_problem(x, PROBLEM_UNAVAILABLE, "the job is being made; ask again");
}

static void
show_submitted(struct exchange *x, unsigned status, const uint8_t id[16])
{
	struct engine_reach reach;
	struct job_view job;

	if (!engine_reach(x->services->engine, id, &reach) ||
	    !engine_job(x->services->engine, id, NULL, &job)) {
		show_job(x, status, id);
		return;
	}
	struct json *v = views_job(&job);
	json_add(v, "warnings", views_warnings(&reach));
	exchange_json(x, status, v);
}

/* Submissions and deletions of an owner in an hour; false: answered. */
static bool
spend(struct exchange *x)
{
	if (x->who.roles & ROLE_ADMIN)
		return true;
	x->retry_after_s = engine_owner_spend(x->services->engine, x->who.owner);
	if (x->retry_after_s > 0)
		exchange_problem(x, PROBLEM_TOO_MANY_REQUESTS,
		    "as many submissions and deletions as the coordinator's [limits] "
		    "owner_changes_per_hour allows: try again in %u s, or ask its administrator",
		    x->retry_after_s);
	return x->retry_after_s == 0;
}

static void
refuse(struct exchange *x, enum err e, bool bounded, const struct why *why)
{
	if (e == ERR_INVALID || e == ERR_UNSUPPORTED || e == ERR_LIMIT)
		exchange_problem(x, PROBLEM_BAD_JOB, "%s", why->text);
	else if (e == ERR_STATE)
		exchange_problem(x, PROBLEM_DELETED_JOB, "%s", why->text);
	else if (e == ERR_DENIED && bounded)
		exchange_problem(x, PROBLEM_OWNER_LIMIT, "%s", why->text);
	else
		exchange_failed(x, e, why);
}

static void
begin_document(struct exchange *x, struct engine_document *d, char by[EXCHANGE_ACTOR_MAX])
{
	exchange_actor(x, by);
	*d = (struct engine_document){.text = buf_str(&x->body),
	    .len = x->body.len,
	    .by = by,
	    .bounded = !(x->who.roles & ROLE_ADMIN)};
	memcpy(d->owner, x->who.owner, sizeof(d->owner));
}

void
api_jobs_submit(struct exchange *x)
{
	char by[EXCHANGE_ACTOR_MAX];
	struct engine_document document;
	struct why why = {""};
	uint8_t id[16];
	bool created;

	if (!spend(x))
		return;
	begin_document(x, &document, by);
	enum err e = engine_submit(x->services->engine, &document, id, &created, &why);
	if (e)
		refuse(x, e, document.bounded, &why);
	else
		show_submitted(x, created ? 201 : 200, id);
}

/* It makes the first model, as a submission does, and so counts as one. */
void
api_jobs_plan(struct exchange *x)
{
	struct engine_trial *trial = NULL;
	char by[EXCHANGE_ACTOR_MAX];
	struct engine_document document;
	struct why why = {""};

	if (!spend(x))
		return;
	begin_document(x, &document, by);
	trial = calloc(1, sizeof(*trial));
	enum err e = trial ? engine_try(x->services->engine, &document, trial, &why) : ERR_NOMEM;
	if (e)
		refuse(x, e, document.bounded, &why);
	else
		exchange_json(x, 200, views_trial(trial, x->services));
	free(trial);
}

/* --- one job, with its document */

static enum err
read_row(struct store_db *db, void *arg, struct why *why)
{
	struct store_job *row = arg;

	(void)why;
	return store_job_get(db, row->id, row);
}

/* The caller frees its document. False: answered. */
static bool
find_row(struct exchange *x, struct job_view *job, struct store_job *row)
{
	struct why why = {""};

	if (!find_job(x, row->id, job))
		return false;
	enum err e = store_read(x->services->store, read_row, row, &why);
	if (e)
		exchange_failed(x, e, &why);
	return !e;
}

/* What a trainer says may hold anything, of its data too: no other reader or submitter gets it. */
static bool
may_read_logs(const struct exchange *x, const struct job_view *job)
{
	return (x->who.roles & ROLE_ADMIN) ||
	    ((x->who.roles & ROLE_SUBMITTER) &&
		memcmp(x->who.owner, job->owner, sizeof(job->owner)) == 0);
}

struct overridden {
	const struct store_job *row;
	struct json *shown; /* made by the reading, the caller's */
};

/* What was set of it, beside what its document says. */
static enum err
read_overridden(struct store_db *db, void *arg, struct why *why)
{
	struct overridden *o = arg;
	struct override_set set;
	struct job_spec spec;
	char *text = NULL;

	enum err e = store_override_get(db, o->row->id, &text);
	if (e)
		return e == ERR_NOTFOUND ? ERR_OK : e;
	e = override_parse(&set, text, strlen(text), why);
	free(text);
	if (!e)
		e = job_parse(&spec, o->row->document, o->row->document_len, why);
	if (e)
		return e;
	o->shown = views_overrides(&set, &spec);
	job_deinit(&spec);
	return ERR_OK;
}

/* What a job of this row is run by; false: answered. */
static bool
add_terms(struct exchange *x, const struct store_job *row, struct json *v)
{
	struct overridden o = {.row = row, .shown = NULL};
	struct json *document = NULL;
	struct why why = {""};

	enum err e = json_parse(&document, row->document, row->document_len, &why);
	if (!e)
		e = store_read(x->services->store, read_overridden, &o, &why);
	json_add(v, "document", document);
	json_add(v, "overrides", o.shown ? o.shown : json_object());
	if (e)
		exchange_failed(x, e, &why);
	return !e;
}

void
api_job_show(struct exchange *x)
{
	struct store_job row = {.document = NULL};
	struct job_view job;

	if (!find_row(x, &job, &row))
		return;
	struct json *v = views_job(&job);
	bool added = add_terms(x, &row, v);
	free(row.document);
	if (!added) {
		json_free(v);
		return;
	}
	if (may_read_logs(x, &job))
		json_add(v, "failures",
		    views_failures(x->services->engine, x->services->registry, job.id));
	exchange_json(x, 200, v);
}

/* To the byte, as its id is their hash. */
void
api_job_document(struct exchange *x)
{
	struct store_job row = {.document = NULL};
	struct job_view job;

	if (!find_row(x, &job, &row))
		return;
	exchange_bytes(x, 200, "application/json", row.document, row.document_len);
	free(row.document);
}

/* A job that this caller may change, or a problem response and false. */
static bool
read_own(struct exchange *x, uint8_t id[16])
{
	if (!read_id(x, id))
		return false;
	bool foreign = !(x->who.roles & ROLE_ADMIN) &&
	    engine_is_foreign(x->services->engine, id, x->who.owner);
	if (foreign)
		exchange_problem(x, PROBLEM_FORBIDDEN, "the job was submitted by somebody else");
	return !foreign;
}

static void
not_changed(struct exchange *x, enum err e, const struct why *why)
{
	if (e == ERR_NOTFOUND)
		exchange_problem(x, PROBLEM_UNKNOWN_JOB, "no such job");
	else if (e == ERR_STATE)
		exchange_problem(x, PROBLEM_WRONG_STATE, "%s", why->text);
	else
		exchange_failed(x, e, why);
}

static void
command(struct exchange *x, enum job_state to)
{
	char by[EXCHANGE_ACTOR_MAX];
	struct why why = {""};
	uint8_t id[16];

	if (!read_own(x, id))
		return;
	exchange_actor(x, by);
	enum err e = engine_command(x->services->engine, id, to, by, &why);
	if (e)
		not_changed(x, e, &why);
	else
		show_job(x, 200, id);
}

void
api_job_resume(struct exchange *x)
{
	command(x, JOB_RUNNING);
}

void
api_job_pause(struct exchange *x)
{
	command(x, JOB_PAUSED);
}

void
api_job_stop(struct exchange *x)
{
	command(x, JOB_STOPPED);
}

void
api_job_set(struct exchange *x)
{
	const char *text = buf_str(&x->body);
	struct override_set change;
	struct engine_terms_change c = {.change = &change, .bounded = !(x->who.roles & ROLE_ADMIN)};
	char by[EXCHANGE_ACTOR_MAX];
	struct why why = {""};
	uint8_t id[16];

	if (!read_own(x, id))
		return;
	enum err e = override_parse(&change, text, x->body.len, &why);
	if (!e && override_is_empty(&change))
		e = err_set(&why, ERR_INVALID, "nothing to set");
	exchange_actor(x, by);
	c.by = by;
	if (!e)
		e = engine_set(x->services->engine, id, &c, &why);
	if (e == ERR_INVALID || e == ERR_LIMIT)
		exchange_problem(x, PROBLEM_BAD_MESSAGE, "%s", why.text);
	else if (e == ERR_DENIED && c.bounded)
		exchange_problem(x, PROBLEM_OWNER_LIMIT, "%s", why.text);
	else if (e)
		not_changed(x, e, &why);
	else
		show_job(x, 200, id);
}

void
api_job_delete(struct exchange *x)
{
	char by[EXCHANGE_ACTOR_MAX];
	struct engine_deletion gone;
	struct why why = {""};
	uint8_t id[16];
	bool dry;

	if (!read_own(x, id) || !exchange_flag(x, "dry", &dry) || (!dry && !spend(x)))
		return;
	exchange_actor(x, by);
	enum err e = engine_delete(x->services->engine, id, by, dry, &gone, &why);
	if (e) {
		not_changed(x, e, &why);
		return;
	}
	struct json *v = json_object();
	json_add_string(v, "job", x->param[0]);
	json_add_u64(v, "models", gone.models);
	json_add_u64(v, "deltas", gone.deltas);
	json_add_u64(v, "bytes", gone.bytes);
	exchange_json(x, 200, v);
}

/* --- rounds */

static enum err
add_metric(void *ctx, const struct metric_row *m)
{
	struct json *v = json_object();

	json_add_double(v, "mean", m->mean);
	json_add_u64(v, "reports", m->reports);
	json_add(ctx, m->name, v);
	return ERR_OK;
}

static enum err
add_figures(struct store_db *db, const struct store_round *r, struct json *to)
{
	char *text = NULL;
	enum err e = metric_rows_figures(db, r->job, r->round, &text);

	if (e == ERR_NOTFOUND)
		json_add_null(to, "figures");
	else if (!e)
		json_add(to, "figures", json_new_printed(text));
	free(text);
	return e == ERR_NOTFOUND ? ERR_OK : e;
}

/* What was in force beside the job's document as it closed; most rounds have none. */
static enum err
add_overrides(struct store_db *db, const struct store_round *r, struct json *to)
{
	char *text = NULL;
	enum err e = store_override_of_round(db, r->job, r->round, &text);

	if (!e)
		json_add(to, "overrides", json_new_printed(text));
	free(text);
	return e == ERR_NOTFOUND ? ERR_OK : e;
}

/* A round with what its trainers report by names of their own. */
static enum err
show_round(struct store_db *db, const struct store_round *r, struct json **out)
{
	struct json *metrics = json_object();

	*out = views_round(r);
	enum err e = metric_rows_each(db, r->job, r->round, add_metric, metrics);
	json_add(*out, "metrics", metrics);
	if (!e)
		e = add_overrides(db, r, *out);
	return e ? e : add_figures(db, r, *out);
}

/* Which rounds are to be listed still. */
struct rounds_cursor {
	struct exchange *x;
	struct store_db *db;
	uint8_t job[16];
	uint64_t from, left;
	bool more;
};

/* ERR_CLOSED: it is for the next piece. */
static enum err
add_round(void *ctx, const struct store_round *r)
{
	struct rounds_cursor *at = ctx;
	struct store_round row = *r;
	struct json *v;

	at->more = exchange_list_full(at->x);
	if (at->more)
		return ERR_CLOSED;
	if (states_round_is_open(row.state))
		engine_fill_open(at->x->services->engine, &row);
	enum err e = show_round(at->db, &row, &v);
	exchange_list_add(at->x, v);
	at->from = row.round + 1;
	at->left--;
	return e;
}

static enum err
read_rounds(struct store_db *db, void *arg, struct why *why)
{
	struct rounds_cursor *at = arg;

	(void)why;
	at->db = db;
	at->more = false;
	enum err e = store_round_each(db, at->job, at->from, at->left, add_round, at);
	return at->more ? ERR_OK : e;
}

static enum err
fill_rounds(struct exchange *x, void *cursor, struct why *why)
{
	struct rounds_cursor *at = cursor;
	enum err e = store_read(x->services->store, read_rounds, at, why);

	return !e && at->more ? ERR_AGAIN : e;
}

void
api_rounds_list(struct exchange *x)
{
	struct rounds_cursor first = {.x = x, .from = 1, .left = ROUNDS_PAGE};
	struct job_view job;

	if (!find_job(x, first.job, &job))
		return;
	if (!exchange_number(x, "from", INT64_MAX, &first.from) ||
	    !exchange_number(x, "limit", ROUNDS_PAGE, &first.left))
		return;
	struct rounds_cursor *cursor = malloc(sizeof(*cursor));
	if (cursor)
		*cursor = first;
	exchange_list(x, NULL, "rounds", fill_rounds, cursor);
}

static struct json *
report_json(struct registry *r, const struct store_accept *a)
{
	struct registry_view view;
	struct json *v = json_object();
	struct manifest m;
	char hex[65];

	hex_encode(hex, a->device, 32);
	json_add_string(v, "device", hex);
	if (registry_get(r, a->device, &view) == ERR_OK)
		json_add_string(v, "name", view.row.name);
	if (manifest_decode(&m, a->manifest, sizeof(a->manifest), NULL) == ERR_OK) {
		json_add_u64(v, "task_round", m.round);
		json_add_u64(v, "examples", m.examples);
		json_add_u64(v, "steps", m.steps);
		json_add_double(v, "loss", (double)m.loss);
		json_add_double(v, "accuracy", (double)m.accuracy);
		json_add_double(v, "norm", (double)m.norm);
		json_add_bool(v, "partial", m.flags & MANIFEST_PARTIAL);
	}
	json_add_u64(v, "bytes", a->body_bytes);
	json_add_seconds(v, "accepted_at", a->accepted_at);
	return v;
}

/* Which of a round's reports are to be listed still. */
struct reports_cursor {
	struct exchange *x;
	struct store_accept last; /* what it is in, and after whom */
	bool more;
};

/* ERR_CLOSED: it is for the next piece. */
static enum err
add_report(void *ctx, const struct store_accept *a)
{
	struct reports_cursor *at = ctx;

	at->more = exchange_list_full(at->x);
	if (at->more)
		return ERR_CLOSED;
	exchange_list_add(at->x, report_json(at->x->services->registry, a));
	memcpy(at->last.device, a->device, sizeof(at->last.device));
	at->last.round = a->round;
	return ERR_OK;
}

static enum err
read_reports(struct store_db *db, void *arg, struct why *why)
{
	struct reports_cursor *at = arg;

	(void)why;
	at->more = false;
	enum err e = store_accept_after(db, &at->last, add_report, at);
	return at->more ? ERR_OK : e;
}

static enum err
fill_reports(struct exchange *x, void *cursor, struct why *why)
{
	struct reports_cursor *at = cursor;
	enum err e = store_read(x->services->store, read_reports, at, why);

	return !e && at->more ? ERR_AGAIN : e;
}

struct round_query {
	struct exchange *x;
	uint8_t job[16];
	uint64_t round;
	struct json *shown; /* made by the reading, the caller's */
};

static void
list_reports(const struct round_query *q)
{
	struct reports_cursor *cursor = calloc(1, sizeof(*cursor));

	if (cursor) {
		cursor->x = q->x;
		memcpy(cursor->last.job, q->job, sizeof(q->job));
		cursor->last.folded = q->round;
	}
	exchange_list(q->x, q->shown, "devices", fill_reports, cursor);
}

static enum err
read_round(struct store_db *db, void *arg, struct why *why)
{
	struct round_query *q = arg;
	struct store_round row;

	enum err e = store_round_get(db, q->job, q->round, &row);
	if (e == ERR_NOTFOUND)
		return err_set(why, e, "no such round");
	if (e)
		return e;
	if (states_round_is_open(row.state))
		engine_fill_open(q->x->services->engine, &row);
	return show_round(db, &row, &q->shown);
}

void
api_round_show(struct exchange *x)
{
	struct round_query q = {.x = x};
	struct why why = {""};
	struct job_view job;

	if (!find_job(x, q.job, &job))
		return;
	if (!num_u64(x->param[1], INT64_MAX, &q.round)) {
		exchange_problem(x, PROBLEM_NOT_FOUND, "a round is a number");
		return;
	}
	enum err e = store_read(x->services->store, read_round, &q, &why);
	if (e) {
		json_free(q.shown);
		exchange_failed(x, e, &why);
		return;
	}
	if (x->who.roles & ROLE_READERS)
		list_reports(&q);
	else
		exchange_json(x, 200, q.shown);
}
