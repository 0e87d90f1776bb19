#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "engine.h"
#include "hex.h"
#include "json.h"
#include "manifest.h"
#include "messages.h"
#include "metric_rows.h"
#include "num.h"
#include "registry.h"
#include "services.h"
#include "store.h"
#include "view.h"
#include "views.h"

#define ROUNDS_PAGE 1000
#define ROUND_ROWS 4 /* its own, metrics, figures, overrides */

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

/* Adds the overrides that were in force when the round closed; most rounds have none. */
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

/* *out: a round as JSON, with the metrics that trainers report by names of their own. */
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

/* The rounds that are still to be listed. */
struct rounds_cursor {
	struct exchange *x;
	struct store_db *db;
	uint8_t job[16];
	uint64_t from, left;
	bool more;
};

/* Adds a round to the list. ERR_CLOSED: the round is left for the next piece. */
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
	exchange_looked(at->x, ROUND_ROWS);
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

	if (!views_find_job(x, first.job, &job))
		return;
	if (!exchange_number(x, "from", INT64_MAX, &first.from) ||
	    !exchange_number(x, "limit", ROUNDS_PAGE, &first.left))
		return;
	struct rounds_cursor *cursor = malloc(sizeof(*cursor));
	if (cursor)
		*cursor = first;
	exchange_list(x, NULL, "rounds", fill_rounds, cursor);
}

static double
loss_of(const struct store_accept *a, const struct manifest *m)
{
	struct report r;

	if (!a->report || messages_report_decode(&r, a->report, strlen(a->report), NULL))
		return (double)m->loss;
	return messages_report_loss(&r.trained, (double)m->loss);
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
		json_add_double(v, "loss", loss_of(a, &m));
		json_add_double(v, "accuracy", (double)m.accuracy);
		json_add_double(v, "norm", (double)m.norm);
		json_add_bool(v, "partial", m.flags & MANIFEST_PARTIAL);
	}
	json_add_u64(v, "bytes", a->body_bytes);
	json_add_seconds(v, "accepted_at", a->accepted_at);
	return v;
}

/* The reports of a round that are still to be listed. */
struct reports_cursor {
	struct exchange *x;
	struct store_accept last; /* job and round, and the last device that was listed */
	bool more;
};

/* Adds a report to the list. ERR_CLOSED: the report is left for the next piece. */
static enum err
add_report(void *ctx, const struct store_accept *a)
{
	struct reports_cursor *at = ctx;

	at->more = exchange_list_full(at->x);
	if (at->more)
		return ERR_CLOSED;
	exchange_looked(at->x, 1);
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
	struct json *shown; /* made by the reading; the caller frees it */
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

	if (!views_find_job(x, q.job, &job))
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
