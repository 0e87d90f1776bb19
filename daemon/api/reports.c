#include "reports.h"

#include "archive.h"
#include "engine.h"
#include "health.h"
#include "json.h"
#include "registry.h"
#include "report.h"
#include "server.h"
#include "services.h"
#include "spool.h"
#include "states.h"
#include "store.h"

/* A histogram as JSON: the buckets that are not empty as [upper bound, count]; the bound of the last bucket is null. */
static struct json *
histogram_json(const struct histogram *h)
{
	struct json *v = json_object(), *list = json_array();

	json_add_u64(v, "count", h->count);
	json_add_double(v, "sum", h->sum_seconds);
	for (size_t i = 0; i <= HISTOGRAM_BOUNDS; i++) {
		if (h->buckets[i] == 0)
			continue;
		struct json *bucket = json_array();
		json_push(bucket, json_new_double(histogram_bound(i)));
		json_push(bucket, json_new_u64(h->buckets[i]));
		json_push(list, bucket);
	}
	json_add(v, "buckets", list);
	return v;
}

static struct json *
engine_json(const struct services *s)
{
	struct json *v = json_object(), *jobs = json_object();
	struct engine_report r;

	jobs_report(s->engine, &r);
	for (enum job_state i = JOB_RUNNING; i <= JOB_STOPPED; i++)
		json_add_u64(jobs, states_job_name(i), r.jobs[i]);
	json_add(v, "jobs", jobs);
	json_add_u64(v, "jobs_lacking", r.jobs_lacking);
	json_add_u64(v, "tasks_total", r.tasks_total);
	json_add_u64(v, "tasks_aborted_total", r.tasks_aborted_total);
	json_add_u64(v, "deltas_total", r.deltas_total);
	json_add_u64(v, "delta_bytes_total", r.delta_bytes_total);
	json_add_u64(v, "rounds_committed_total", r.rounds_committed_total);
	json_add_u64(v, "rounds_failed_total", r.rounds_failed_total);
	json_add_u64(v, "rounds_reopened_total", r.rounds_reopened_total);
	json_add(v, "round_seconds", histogram_json(&r.round_seconds));
	json_add(v, "fold_seconds", histogram_json(&r.fold_seconds));
	json_add(v, "lock_held_seconds", histogram_json(&r.lock.held_seconds));
	json_add_double(v, "lock_held_cpu_seconds_max", r.lock.held_cpu_seconds_max);
	return v;
}

static struct json *
store_json(const struct services *s)
{
	struct json *v = json_object();
	struct store_report r;

	store_report(s->store, &r);
	json_add_u64(v, "commits_total", r.commits_total);
	json_add_u64(v, "works_total", r.works_total);
	json_add(v, "commit_seconds", histogram_json(&r.commit_seconds));
	return v;
}

static struct json *
registry_json(const struct services *s)
{
	struct json *v = json_object();
	struct registry_report r;

	registry_report(s->registry, &r);
	for (enum device_state i = DEVICE_ACTIVE; i <= DEVICE_LEFT; i++)
		json_add_u64(v, states_device_name(i), r.by_state[i]);
	json_add_u64(v, "seen", r.seen);
	json_add_u64(v, "not_renewed", r.not_renewed);
	json_add_u64(v, "locked_out", r.locked_out);
	return v;
}

static struct json *
spool_json(const struct services *s)
{
	struct json *v = json_object();
	struct spool_report r;
	struct archive_report kept;

	spool_report(s->spool, &r);
	archive_report(s->archive, &kept);
	json_add_u64(v, "used_bytes", r.used_bytes);
	json_add_u64(v, "quota_bytes", r.quota_bytes);
	json_add_u64(v, "kept_deltas", kept.deltas);
	json_add_u64(v, "kept_bytes", kept.used_bytes);
	return v;
}

static struct json *
server_json(const struct services *s)
{
	static const char *const classes[SERVER_CLASSES] = {"2xx", "3xx", "4xx", "5xx"};
	struct json *v = json_object(), *responses = json_object();
	struct server_report r;

	server_report(s->server, &r);
	json_add_u64(v, "connections", r.connections);
	json_add_u64(v, "connections_total", r.connections_total);
	json_add_u64(v, "handshakes_total", r.handshakes_total);
	json_add_u64(v, "handshakes_failed_total", r.handshakes_failed_total);
	for (unsigned i = 0; i < SERVER_CLASSES; i++)
		json_add_u64(responses, classes[i], r.responses_total[i]);
	json_add(v, "responses_total", responses);
	json_add_u64(v, "received_bytes_total", r.received_bytes_total);
	json_add_u64(v, "sent_bytes_total", r.sent_bytes_total);
	return v;
}

static struct json *
health_json(const struct services *s)
{
	struct json *v = json_object();
	struct health_report r;

	health_report(s->health, &r);
	json_add_u64(v, "failures_total", r.failures_total);
	return v;
}

struct json *
reports_json(const struct services *s)
{
	struct json *v = json_object();

	json_add(v, "engine", engine_json(s));
	json_add(v, "store", store_json(s));
	json_add(v, "registry", registry_json(s));
	json_add(v, "spool", spool_json(s));
	json_add(v, "server", server_json(s));
	json_add(v, "health", health_json(s));
	return v;
}
