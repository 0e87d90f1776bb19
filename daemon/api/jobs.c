#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "buf.h"
#include "engine.h"
#include "hex.h"
#include "job_list.h"
#include "job_needs.h"
#include "manifest.h"
#include "metric_rows.h"
#include "num.h"
#include "override.h"
#include "registry.h"
#include "services.h"
#include "store.h"
#include "view.h"
#include "views.h"

#define BYTES_PER_ROW 2048 /* of a document that is sent as it is */

void
api_jobs_list(struct exchange *x)
{
	views_jobs(x, NULL);
}

/* --- what is said of a document */

static void __attribute__((format(printf, 2, 3))) warn(struct json *list, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_push(list, json_new_string(text));
}

/* Warns if too few devices have what the job needs. */
static void
warn_of_offers(struct json *list, const struct engine_reach *r)
{
	const uint64_t each = r->round.mode == ROUND_MODE_BUFFERED ? r->round.per_device : 1;
	char text[JOB_ROUND_SENTENCE];

	if (r->with_data > 0 &&
	    job_round_lacks_data(text, &r->round, &r->data, r->with_data, r->devices))
		warn(list, "%s", text);
	else if (r->with_data > 0 && r->data.name[0] && r->with_data * each < r->round.goal)
		warn(list,
		    "data: %" PRIu64 " of %" PRIu64 " devices have offered \"%s\" with %" PRIu64
		    " examples or more, and round.goal is %u: every round waits for its grace "
		    "time or deadline",
		    r->with_data, r->devices, r->data.name, r->data.min_examples, r->round.goal);
	if (r->with_trainer > 0 &&
	    job_round_lacks_trainer(text, &r->round, r->trainer, r->with_trainer, r->devices))
		warn(list, "%s", text);
}

static void
warn_of_devices(struct json *list, const struct engine_reach *r)
{
	const uint64_t each = r->round.mode == ROUND_MODE_BUFFERED ? r->round.per_device : 1;

	if (r->round.goal > r->devices * each)
		warn(list, "round.goal is %u, and %" PRIu64 " active devices may work on it: %s",
		    r->round.goal, r->devices,
		    job_round_devices(&r->round) > r->devices
			? "no round can close before more of them join"
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
		    r->heard, r->data.name, r->data.min_examples);
	if (r->heard > 0 && r->with_trainer == 0)
		warn(list,
		    "nobody has the trainer: none of the %" PRIu64
		    " devices that asked for work lately offers a trainer \"%s\"",
		    r->heard, r->trainer);
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
	if (r->without_figures > 0)
		warn(list,
		    "%" PRIu64 " of the %" PRIu64
		    " devices with the trainer \"%s\" give none of the "
		    "figures that evaluate.figures asks for: they get no task (no-figures)",
		    r->without_figures, r->with_trainer, r->trainer);
}

static void
warn_of_evaluators(struct json *list, const struct engine_reach *r)
{
	char text[ENGINE_UNMEASURED_MAX];

	if (jobs_evaluator_missing(text, &r->evaluators))
		warn(list,
		    "evaluate: %s; until there is one, each round waits evaluate.deadline_s for "
		    "its "
		    "figure and goes on without",
		    text);
}

struct json *
api_jobs_warnings(const struct engine_reach *r, const char *name)
{
	struct json *list = json_array();

	if (hex_like_id(name))
		warn(list,
		    "the name \"%s\" looks like an id: where another job's id begins so, the word "
		    "is refused",
		    name);
	if (r->warning)
		warn(list, "%s", r->warning);
	warn_of_devices(list, r);
	warn_of_offers(list, r);
	warn_of_examples(list, r);
	warn_of_evaluators(list, r);
	return list;
}

static struct json *
submitted_json(const struct services *s, const struct job_view *job, const struct engine_reach *r)
{
	struct json *v = views_job(job), *warnings = api_jobs_warnings(r, job->name);
	struct usage u;

	if (usage_read(s, &u, NULL) == ERR_OK) {
		const struct job_forecast f = usage_forecast(&u, job);
		if (!usage_fits(&u, usage_bytes(&f)))
			warn(warnings, "disk: the coordinator has no room for what the job needs");
	}
	json_add(v, "warnings", warnings);
	return v;
}

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
	if (r->evaluators.by_program) {
		json_add_u64(v, "evaluators", r->evaluators.devices);
		json_add_u64(v, "evaluators_ready", r->evaluators.ready);
	}
	return v;
}

static struct json *
trial_json(const struct engine_trial *t, const struct services *s)
{
	struct json *v = json_object();
	struct usage u;

	char hex[33];

	hex_encode(hex, t->job.id, 16);
	json_add_string(v, "job", hex);
	json_add_string(v, "name", t->job.name);
	json_add_bool(v, "exists", t->exists);
	json_add_u64(v, "parameters", t->job.parameters);
	json_add_u64(v, "model_bytes", t->job.model_bytes);
	json_add(v, "reach", reach_json(&t->reach));
	json_add(v, "warnings", api_jobs_warnings(&t->reach, t->job.name));
	if (usage_read(s, &u, NULL) == ERR_OK)
		json_add(v, "forecast", views_forecast(&u, &t->job));
	return v;
}

/* --- submissions */

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

/* Answers a submission with the job. exists: the same document was submitted before. */
static void
show_submitted(struct exchange *x, bool exists, const uint8_t id[16])
{
	const unsigned status = exists ? 200 : 201;
	struct engine_reach reach;
	struct job_view job;

	if (!engine_job(x->services->engine, id, NULL, &job)) {
		show_job(x, status, id);
		return;
	}
	struct json *v = engine_reach(x->services->engine, id, &reach)
	    ? submitted_json(x->services, &job, &reach)
	    : views_job(&job);
	json_add_bool(v, "exists", exists);
	exchange_json(x, status, v);
}

/* Fills s with what a submission costs its owner; NULL for administrators, who are not charged. */
static struct engine_spending *
charge(const struct exchange *x, struct engine_spending *s, uint64_t text, unsigned entries)
{
	*s = (struct engine_spending){.text = text, .entries = entries};
	memcpy(s->owner, x->who.owner, sizeof(s->owner));
	return x->who.roles & ROLE_ADMIN ? NULL : s;
}

static void
too_many(struct exchange *x, const struct engine_spending *s, const struct why *why)
{
	x->retry_after_s = s->wait_s;
	exchange_problem(x, PROBLEM_TOO_MANY_REQUESTS, "%s", why->text);
}

/* Charges the owner; s may be NULL. False: there is no room, and the problem response is set. */
static bool
spend(struct exchange *x, struct engine_spending *s)
{
	struct why why = {""};
	enum err e = s ? engine_owner_spend(x->services->engine, s, &why) : ERR_OK;

	if (e)
		too_many(x, s, &why);
	return !e;
}

static void
refuse(struct exchange *x, enum err e, bool bounded, const struct why *why)
{
	if (e == ERR_INVALID || e == ERR_UNSUPPORTED || e == ERR_LIMIT)
		exchange_problem(x, PROBLEM_BAD_JOB, "%s", why->text);
	else if (e == ERR_STATE)
		exchange_problem(x, PROBLEM_DELETED_JOB, "%s", why->text);
	else if (e == ERR_EXISTS)
		exchange_problem(x, PROBLEM_FOREIGN_JOB, "%s", why->text);
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
	struct engine_spending spending,
	    *charged = charge(x, &spending, x->body.len, ENGINE_SUBMISSION_ENTRIES);
	struct engine *g = x->services->engine;
	struct why why = {""};
	uint8_t id[16];
	bool created;

	/* A repeat is free. */
	if (charged && engine_has(g, buf_str(&x->body), x->body.len))
		charged = NULL;
	if (!spend(x, charged))
		return;
	begin_document(x, &document, by);
	document.spending = charged;
	enum err e = engine_submit(g, &document, id, &created, &why);
	if (charged && (e || !created))
		engine_owner_unspend(g, charged);
	if (e)
		refuse(x, e, document.bounded, &why);
	else
		show_submitted(x, !created, id);
}

/* A plan checks a document as a submission does, and is charged as one. */
void
api_jobs_plan(struct exchange *x)
{
	struct engine_trial *trial = NULL;
	char by[EXCHANGE_ACTOR_MAX];
	struct engine_document document;
	struct engine_spending spending;
	struct why why = {""};

	if (!spend(x, charge(x, &spending, 0, 0)))
		return;
	begin_document(x, &document, by);
	trial = calloc(1, sizeof(*trial));
	enum err e = trial ? engine_try(x->services->engine, &document, trial, &why) : ERR_NOMEM;
	if (e)
		refuse(x, e, document.bounded, &why);
	else
		exchange_json(x, 200, trial_json(trial, x->services));
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

/* *row: the job's row, whose document the caller frees. False: the problem response is set. */
static bool
find_row(struct exchange *x, struct job_view *job, struct store_job *row)
{
	struct why why = {""};

	if (!views_find_job(x, row->id, job))
		return false;
	enum err e = store_read(x->services->store, read_row, row, &why);
	if (e)
		exchange_failed(x, e, &why);
	return !e;
}

/* May the client read trainers' messages of this job? A message may hold data, so only administrators and the job's owner may. */
static bool
may_read_logs(const struct exchange *x, const struct job_view *job)
{
	return (x->who.roles & ROLE_ADMIN) ||
	    ((x->who.roles & ROLE_SUBMITTER) &&
		memcmp(x->who.owner, job->owner, sizeof(job->owner)) == 0);
}

struct overridden {
	const struct store_job *row;
	struct json *shown, *defaults; /* made by the reading; the caller frees them */
};

/* Reads the job's overrides, and shows them beside the document's values. */
static enum err
read_overridden(struct store_db *db, void *arg, struct why *why)
{
	struct overridden *o = arg;
	struct override_set set;
	struct job_spec spec;
	char *text = NULL;

	enum err e = store_stamp_get(db, o->row->id, &text);
	if (!e)
		o->defaults = json_new_printed(text);
	free(text);
	if (e && e != ERR_NOTFOUND)
		return e;
	e = store_override_get(db, o->row->id, &text);
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

/* Adds the document, and the overrides and defaults that the job is run by. False: the problem response is set. */
static bool
add_terms(struct exchange *x, const struct store_job *row, struct json *v)
{
	struct overridden o = {.row = row};
	struct json *document = NULL;
	struct why why = {""};

	enum err e = json_parse(&document, row->document, row->document_len, &why);
	if (!e)
		e = store_read(x->services->store, read_overridden, &o, &why);
	json_add(v, "document", document);
	json_add(v, "overrides", o.shown ? o.shown : json_object());
	json_add(v, "defaults", o.defaults ? o.defaults : json_object());
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
	if (!job.for_device) {
		views_hands(v, x->services, job.id);
		json_add(v, "refused", views_refusals(x->services, job.id));
	}
	if (may_read_logs(x, &job))
		json_add(v, "failures",
		    views_failures(x->services->engine, x->services->registry, job.id));
	exchange_json(x, 200, v);
}

/* Answers with the document byte for byte, as the job's id is the document's hash. */
void
api_job_document(struct exchange *x)
{
	struct store_job row = {.document = NULL};
	struct job_view job;

	if (!find_row(x, &job, &row))
		return;
	exchange_looked(x, row.document_len / BYTES_PER_ROW);
	exchange_bytes(x, 200, "application/json", row.document, row.document_len);
	free(row.document);
}

/* id: the job in the path, if this client may change it; else a problem response and false. */
static bool
read_own(struct exchange *x, uint8_t id[16])
{
	if (!views_find_id(x, id))
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
	struct engine_spending spending, *charged = charge(x, &spending, 0, ENGINE_RESUME_ENTRIES);
	struct why why = {""};
	uint8_t id[16];

	if (!read_own(x, id))
		return;
	exchange_actor(x, by);
	enum err e = engine_command_of(x->services->engine, id, to, by, charged, &why);
	if (e == ERR_AGAIN)
		too_many(x, &spending, &why);
	else if (e)
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
	struct engine_spending spending;
	struct why why = {""};
	uint8_t id[16];

	if (!read_own(x, id))
		return;
	c.spending = charge(x, &spending, x->body.len, 1);
	enum err e = override_parse(&change, text, x->body.len, &why);
	if (!e && override_is_empty(&change))
		e = err_set(&why, ERR_INVALID, "nothing to set");
	exchange_actor(x, by);
	c.by = by;
	if (!e)
		e = engine_set(x->services->engine, id, &c, &why);
	if (e == ERR_AGAIN)
		too_many(x, &spending, &why);
	else if (e == ERR_INVALID || e == ERR_LIMIT)
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

	if (!read_own(x, id) || !exchange_flag(x, "dry", &dry))
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
