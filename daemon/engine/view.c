#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "engine.h"
#include "engine_inside.h"
#include "hex.h"

/* Engine state as JSON: the shapes of docs/api.md. */

static void
add_hex(struct json *v, const char *key, const uint8_t *bytes, size_t len)
{
	char hex[65];

	hex_encode(hex, bytes, len);
	json_add_string(v, key, hex);
}

static struct json *
metric_json(const struct store_metric *m)
{
	struct json *v = json_object();

	json_add_u64(v, "examples", m->examples);
	json_add_double(v, "loss", m->loss);
	json_add_double(v, "accuracy", m->accuracy);
	return v;
}

/* Wall-clock time of a moment of the monotonic clock. */
static double
wall_of(uint64_t ms)
{
	return clock_wall() + ((double)ms - (double)clock_ms()) / 1000;
}

static struct json *
open_json(const struct engine_job *j)
{
	struct json *v = json_object();

	json_add_u64(v, "round", j->row.round);
	json_add_string(v, "state", round_state_name(&j->round));
	json_add_u64(v, "reports", j->round.accepted);
	json_add_u64(v, "invited", j->round.invited);
	json_add_u64(v, "goal", j->spec.round.goal);
	json_add_u64(v, "quorum", j->spec.round.quorum);
	json_add_u64(v, "reopened", j->round.reopened);
	json_add_u64(v, "bytes_up", j->bytes_up);
	json_add_double(v, "opened_at", j->row.opened_at);
	json_add_double(v, "deadline_at", wall_of(j->round.deadline_ms));
	return v;
}

static struct json *
job_json(const struct engine_job *j)
{
	static const uint8_t nobody[32];
	struct json *v = json_object();

	json_add_string(v, "job", j->hex);
	json_add_string(v, "name", j->spec.name);
	json_add_string(v, "state", states_job_name(j->state));
	json_add_string(v, "reason", j->reason);
	json_add_double(v, "priority", (double)j->spec.priority);
	json_add_u64(v, "round", j->row.round);
	json_add_u64(v, "rounds_committed", j->rounds_committed);
	add_hex(v, "model", j->model, 32);
	json_add_u64(v, "model_bytes", j->model_bytes);
	json_add_u64(v, "parameters", j->table.elements);
	if (j->metric.known) {
		struct json *m = metric_json(&j->metric);
		json_add_u64(m, "round", j->metric_round);
		json_add(v, "metric", m);
	} else {
		json_add_null(v, "metric");
	}
	struct json *guard = engine_schedule_json(j);
	if (guard)
		json_add(v, "guard", guard);
	else
		json_add_null(v, "guard");
	json_add_double(v, "created_at", j->created_at);
	if (memcmp(j->owner, nobody, sizeof(nobody)) == 0)
		json_add_null(v, "owner");
	else
		add_hex(v, "owner", j->owner, 32);
	if (j->round.state == ROUND_ENDED)
		json_add_null(v, "open");
	else
		json_add(v, "open", open_json(j));
	return v;
}

struct json *
engine_jobs_json(struct engine *g, const uint8_t *device)
{
	struct json *list = json_array();

	pthread_mutex_lock(&g->lock);
	for (const struct engine_job *j = g->jobs; j; j = j->next)
		if (!device || !engine_ineligible(g, j, device))
			json_push(list, job_json(j));
	pthread_mutex_unlock(&g->lock);
	return list;
}

/* The document as submitted comes from the store: the engine keeps only what it parsed. */
struct json *
engine_job_json(struct engine *g, const uint8_t id[16], const uint8_t *device)
{
	struct json *v = NULL;

	pthread_mutex_lock(&g->lock);
	const struct engine_job *j = engine_find(g, id);
	if (j && (!device || !engine_ineligible(g, j, device)))
		v = job_json(j);
	pthread_mutex_unlock(&g->lock);
	return v;
}

struct json *
engine_round_json(const struct store_round *r)
{
	struct json *v = json_object();
	bool open = r->state == OUTCOME_OPEN;

	json_add_u64(v, "round", r->round);
	json_add_string(v, "state", states_round_name(r->state));
	add_hex(v, "base", r->base, 32);
	if (open)
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
	json_add_double(v, "opened_at", r->opened_at);
	if (open) {
		json_add_null(v, "closed_at");
		json_add_double(v, "seconds", clock_wall() - r->opened_at);
	} else {
		json_add_double(v, "closed_at", r->closed_at);
		json_add_double(v, "seconds", r->closed_at - r->opened_at);
	}
	if (r->evaluate.known)
		json_add(v, "evaluate", metric_json(&r->evaluate));
	else
		json_add_null(v, "evaluate");
	json_add_string(v, "reason", r->reason);
	return v;
}

void
engine_fill_open(struct engine *g, struct store_round *r)
{
	pthread_mutex_lock(&g->lock);
	const struct engine_job *j = engine_find(g, r->job);
	if (j && j->row.round == r->round && j->round.state != ROUND_ENDED) {
		r->reports = j->round.accepted;
		r->invited = j->round.invited;
		r->aborted = j->round.aborted;
		r->reopened = j->round.reopened;
		r->bytes_up = j->bytes_up;
		r->bytes_down = j->bytes_down;
	}
	pthread_mutex_unlock(&g->lock);
}

bool
engine_may_read(struct engine *g, const uint8_t device[32], const uint8_t model[32])
{
	bool may = false;

	pthread_mutex_lock(&g->lock);
	for (struct engine_job *j = g->jobs; j && !may; j = j->next)
		may = (memcmp(j->row.base, model, 32) == 0 || memcmp(j->model, model, 32) == 0) &&
		    engine_ineligible(g, j, device) == NULL;
	pthread_mutex_unlock(&g->lock);
	return may;
}

bool
engine_may_work(struct engine *g, const uint8_t device[32], const uint8_t job[16])
{
	pthread_mutex_lock(&g->lock);
	const struct engine_job *j = engine_find(g, job);
	bool may = j && engine_ineligible(g, j, device) == NULL;
	pthread_mutex_unlock(&g->lock);
	return may;
}
