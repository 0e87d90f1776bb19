#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "engine.h"
#include "hex.h"
#include "manifest.h"
#include "num.h"
#include "registry.h"
#include "store.h"
#include "views.h"

#define ROUNDS_PAGE 1000

/* NULL for those who may see everything. */
static const uint8_t *
seen_by(const struct exchange *x)
{
	return x->who.roles & ROLE_READERS ? NULL : x->who.device;
}

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
	bool found = engine_job(x->services->engine, id, seen_by(x), out);
	if (!found)
		exchange_problem(x, PROBLEM_UNKNOWN_JOB, "no such job, or not for this device");
	return found;
}

void
api_jobs_list(struct exchange *x)
{
	struct json *v = json_object();

	json_add(v, "jobs", views_jobs(x->services->engine, seen_by(x)));
	exchange_json(x, 200, v);
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

void
api_jobs_submit(struct exchange *x)
{
	struct why why = {""};
	uint8_t id[16];
	bool created;

	char by[EXCHANGE_ACTOR_MAX];
	struct engine_document document = {.text = buf_str(&x->body), .len = x->body.len, .by = by};
	exchange_actor(x, by);
	memcpy(document.owner, x->who.owner, sizeof(document.owner));
	enum err e = engine_submit(x->services->engine, &document, id, &created, &why);
	if (e == ERR_INVALID || e == ERR_UNSUPPORTED || e == ERR_LIMIT)
		exchange_problem(x, PROBLEM_BAD_JOB, "%s", why.text);
	else if (e)
		exchange_failed(x, e, &why);
	else
		show_job(x, created ? 201 : 200, id);
}

/* --- one job, with its document */

struct job_query {
	uint8_t id[16];
	struct json *document;
};

static enum err
read_document(struct store_db *db, void *arg, struct why *why)
{
	struct job_query *q = arg;
	struct store_job row;

	enum err e = store_job_get(db, q->id, &row);
	if (e)
		return e;
	e = json_parse(&q->document, row.document, row.document_len, why);
	free(row.document);
	return e;
}

void
api_job_show(struct exchange *x)
{
	struct job_query q = {.document = NULL};
	struct why why = {""};
	struct job_view job;

	if (!find_job(x, q.id, &job))
		return;
	enum err e = store_read(x->services->store, read_document, &q, &why);
	if (e) {
		exchange_failed(x, e, &why);
		return;
	}
	struct json *v = views_job(&job);
	json_add(v, "document", q.document);
	exchange_json(x, 200, v);
}

static void
command(struct exchange *x, enum job_state to)
{
	char by[EXCHANGE_ACTOR_MAX];
	struct why why = {""};
	uint8_t id[16];

	if (!read_id(x, id))
		return;
	if (!(x->who.roles & ROLE_ADMIN) &&
	    engine_is_foreign(x->services->engine, id, x->who.owner)) {
		exchange_problem(x, PROBLEM_FORBIDDEN, "the job was submitted by somebody else");
		return;
	}
	exchange_actor(x, by);
	enum err e = engine_command(x->services->engine, id, to, by, &why);
	if (e == ERR_NOTFOUND)
		exchange_problem(x, PROBLEM_UNKNOWN_JOB, "no such job");
	else if (e == ERR_STATE)
		exchange_problem(x, PROBLEM_WRONG_STATE, "%s", why.text);
	else if (e)
		exchange_failed(x, e, &why);
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

/* --- rounds */

struct rounds_query {
	struct exchange *x;
	uint8_t job[16];
	uint64_t from, limit;
	struct json *list;
};

static enum err
add_round(void *ctx, const struct store_round *r)
{
	struct rounds_query *q = ctx;
	struct store_round row = *r;

	if (row.state == OUTCOME_OPEN)
		engine_fill_open(q->x->services->engine, &row);
	json_push(q->list, views_round(&row));
	return ERR_OK;
}

static enum err
read_rounds(struct store_db *db, void *arg, struct why *why)
{
	struct rounds_query *q = arg;

	(void)why;
	return store_round_each(db, q->job, q->from, q->limit, add_round, q);
}

static bool
read_number(struct exchange *x, const char *name, uint64_t max, uint64_t *out)
{
	char text[24];

	if (!http_query(&x->request, name, text, sizeof(text)))
		return true;
	if (num_u64(text, max, out))
		return true;
	exchange_problem(x, PROBLEM_BAD_REQUEST, "%s must be a number up to %llu", name,
	    (unsigned long long)max);
	return false;
}

void
api_rounds_list(struct exchange *x)
{
	struct rounds_query q = {.x = x, .from = 1, .limit = ROUNDS_PAGE};
	struct why why = {""};
	struct job_view job;

	if (!find_job(x, q.job, &job))
		return;
	if (!read_number(x, "from", INT64_MAX, &q.from) ||
	    !read_number(x, "limit", ROUNDS_PAGE, &q.limit))
		return;
	q.list = json_array();
	enum err e = store_read(x->services->store, read_rounds, &q, &why);
	if (e) {
		json_free(q.list);
		exchange_failed(x, e, &why);
		return;
	}
	struct json *v = json_object();
	json_add(v, "rounds", q.list);
	exchange_json(x, 200, v);
}

struct round_query {
	struct exchange *x;
	uint8_t job[16];
	uint64_t round;
	struct store_round row;
	struct json *devices; /* NULL: not asked for */
};

static enum err
add_report(void *ctx, const struct store_accept *a)
{
	struct round_query *q = ctx;
	struct registry_view view;
	struct json *v = json_object();
	struct manifest m;
	char hex[65];

	hex_encode(hex, a->device, 32);
	json_add_string(v, "device", hex);
	if (registry_get(q->x->services->registry, a->device, &view) == ERR_OK)
		json_add_string(v, "name", view.row.name);
	if (manifest_decode(&m, a->manifest, sizeof(a->manifest), NULL) == ERR_OK) {
		json_add_u64(v, "examples", m.examples);
		json_add_u64(v, "steps", m.steps);
		json_add_double(v, "loss", (double)m.loss);
		json_add_double(v, "accuracy", (double)m.accuracy);
		json_add_double(v, "norm", (double)m.norm);
		json_add_bool(v, "partial", m.flags & MANIFEST_PARTIAL);
	}
	json_add_u64(v, "bytes", a->body_bytes);
	json_add_double(v, "accepted_at", a->accepted_at);
	json_push(q->devices, v);
	return ERR_OK;
}

static enum err
read_round(struct store_db *db, void *arg, struct why *why)
{
	struct round_query *q = arg;

	(void)why;
	enum err e = store_round_get(db, q->job, q->round, &q->row);
	if (!e && q->devices)
		e = store_accept_each(db, q->job, q->round, add_report, q);
	return e;
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
	if (x->who.roles & ROLE_READERS)
		q.devices = json_array();
	enum err e = store_read(x->services->store, read_round, &q, &why);
	if (e) {
		json_free(q.devices);
		exchange_failed(x, e, &why);
		return;
	}
	if (q.row.state == OUTCOME_OPEN)
		engine_fill_open(x->services->engine, &q.row);
	struct json *v = views_round(&q.row);
	if (q.devices)
		json_add(v, "devices", q.devices);
	exchange_json(x, 200, v);
}
