#include <string.h>

#include "age.h"
#include "api.h"
#include "archive.h"
#include "clock.h"
#include "drive.h"
#include "engine.h"
#include "hex.h"
#include "json.h"
#include "lost.h"
#include "metrics.h"
#include "ready.h"
#include "registry.h"
#include "report.h"
#include "server.h"
#include "services.h"
#include "services_ca.h"
#include "shared.h"
#include "spool.h"
#include "tls.h"
#include "version.h"
#include "views.h"

void
api_health(struct exchange *x)
{
	struct json *v = json_object();

	json_add_string(v, "status", "ok");
	exchange_json(x, 200, v);
}

/* Adds a warning of a fault that does not keep the coordinator from its work. */
static void
add_warning(const struct services *s, struct json *v)
{
	struct age_report r;

	age_report(s->age, &r);
	if (!r.doubt)
		return;
	json_add_string(v, "warning", age_doubt_name(r.doubt));
	json_add_string(v, "detail", r.detail);
	json_add_seconds(v, "since", r.since_seconds);
}

void
api_ready(struct exchange *x)
{
	struct json *v = json_object();
	struct health_report state;
	struct engine_report jobs;

	ready_report(x->services, &state);
	json_add_string(v, "status", state.reason ? "not ready" : "ready");
	if (state.reason) {
		json_add_string(v, "reason", wait_reason_name(state.reason));
		json_add_string(v, "detail", state.detail);
	}
	if (state.since_seconds > 0)
		json_add_seconds(v, "since", state.since_seconds);
	if (!state.reason)
		add_warning(x->services, v);
	jobs_report(x->services->engine, &jobs);
	if (jobs.jobs_lacking > 0)
		json_add_u64(v, "jobs_lacking", jobs.jobs_lacking);
	exchange_json(x, state.reason ? 503 : 200, v);
	if (state.reason)
		exchange_header(x, "Retry-After", "2");
}

/* Answers with the CA's certificate; then, for tokens that name the CA before, the current CA certified by that CA. */
void
api_ca(struct exchange *x)
{
	const struct services_ca *ca = shared_take(x->services->ca);
	const struct x509_cert *certs[3] = {&ca->current, &ca->cross, &ca->old};
	size_t count = ca->has_old ? 3 : 1, used = 0;
	char pem[3 * 4096];
	enum err e = ERR_OK;

	for (size_t i = 0; i < count && !e; i++) {
		size_t len = sizeof(pem) - used;
		e = x509_to_pem(pem + used, &len, certs[i]);
		used += len;
	}
	shared_give(x->services->ca, ca);
	if (e)
		exchange_failed(x, e, NULL);
	else
		exchange_bytes(x, 200, "application/x-pem-file", pem, used);
}

static struct json *
devices_json(const struct registry_report *r)
{
	struct json *v = json_object();

	json_add_u64(v, "joined", r->joined);
	json_add_u64(v, "active", r->seen);
	return v;
}

static struct json *
spool_json(const struct services *s)
{
	struct json *v = json_object();
	struct spool_report r;

	spool_report(s->spool, &r);
	json_add_u64(v, "bytes", r.used_bytes);
	json_add_u64(v, "quota", r.quota_bytes);
	return v;
}

static struct json *
kept_json(const struct services *s)
{
	struct json *v = json_object();
	struct archive_report r;

	archive_report(s->archive, &r);
	json_add_u64(v, "deltas", r.deltas);
	json_add_u64(v, "bytes", r.used_bytes);
	const struct config *c = shared_take(s->config);
	json_add_u64(v, "limit", c->keep_deltas_bytes);
	shared_give(s->config, c);
	return v;
}

static struct json *
lost_json(const struct services *s)
{
	struct json *v = json_object();
	struct lost_report r;

	spool_lost_report(s->fixed, &r);
	json_add_u64(v, "files", r.files);
	json_add_u64(v, "bytes", r.bytes);
	return v;
}

static struct json *
ca_json(const struct services *s, uint64_t not_renewed)
{
	const struct services_ca *ca = shared_take(s->ca);
	struct json *v = json_object();

	json_add_u64(v, "generation", ca->generation);
	json_add_bool(v, "rotating", ca->rotating);
	shared_give(s->ca, ca);
	json_add_u64(v, "not_renewed", not_renewed);
	return v;
}

/* Who the client is; for readers, submitters and administrators also the owner of their jobs and models. */
static struct json *
asker_json(const struct exchange *x)
{
	static const uint8_t nobody[32];
	struct json *v = json_object();
	char hex[65], by[EXCHANGE_ACTOR_MAX];
	struct registry_view view;

	exchange_actor(x, by);
	json_add_string(v, "by", by);
	/* One that is suspended may do so little that it has no role for now. */
	const bool suspended = (x->who.roles & ROLE_SUSPENDED) &&
	    registry_get(x->services->registry, x->who.device, &view) == ERR_OK;
	json_add_string(v, "role", suspended ? view.row.role : registry_role_name(x->who.roles));
	if (!(x->who.roles & ROLE_READERS))
		return v;
	hex_encode(hex, x->who.owner, sizeof(x->who.owner));
	if (memcmp(x->who.owner, nobody, sizeof(nobody)) == 0)
		json_add_null(v, "owner");
	else
		json_add_string(v, "owner", hex);
	json_add_string(v, "owner_name", x->who.owner_name);
	return v;
}

static struct json *
clock_json(const struct services *s)
{
	struct json *v = json_object();
	struct age_report r;

	age_report(s->age, &r);
	json_add_bool(v, "believed", !r.doubt);
	json_add_string(v, "reason", age_doubt_name(r.doubt));
	json_add_string(v, "detail", r.detail);
	if (r.doubt)
		json_add_seconds(v, "since", r.since_seconds);
	else
		json_add_null(v, "since");
	json_add_seconds(v, "newest", r.newest_seconds);
	return v;
}

void
api_clock_confirm(struct exchange *x)
{
	char actor[EXCHANGE_ACTOR_MAX];
	struct why why = {""};
	bool changed = false;

	exchange_actor(x, actor);
	enum err e = age_confirm(x->services->age, actor, &changed, &why);
	if (e) {
		exchange_failed(x, e, &why);
		return;
	}
	struct json *v = json_object();
	json_add(v, "clock", clock_json(x->services));
	json_add_bool(v, "changed", changed);
	exchange_json(x, 200, v);
}

/* The numbers of jobs that make no progress; jobs that a person paused are counted apart. */
static struct json *
stuck_json(const struct services *s)
{
	struct json *v = json_object(), *kinds = json_object();
	uint64_t count[STUCK_KINDS], jobs = 0;

	rounds_stuck(s->engine, count);
	for (enum stuck_kind k = STUCK_NONE + 1; k < STUCK_KINDS; k++) {
		if (count[k] > 0)
			json_add_u64(kinds, stuck_name(k), count[k]);
		jobs += k == STUCK_PAUSED ? 0 : count[k];
	}
	json_add_u64(v, "jobs", jobs);
	json_add_u64(v, "paused", count[STUCK_PAUSED]);
	json_add(v, "kinds", kinds);
	return v;
}

/* One that is suspended reads it right after a renewal alone, to try out its certificate. */
static bool
may_read(struct exchange *x)
{
	if (!(x->who.roles & ROLE_SUSPENDED) ||
	    registry_tries_out(x->services->registry, x->who.device))
		return true;
	exchange_problem(
	    x, PROBLEM_DEVICE_SUSPENDED, "the device is suspended: it may renew its certificate");
	return false;
}

/* So much, and no more, an agent needs that tries out a new certificate. */
static void
add_first(struct json *v, struct exchange *x)
{
	struct health_report state;

	json_add_string(v, "version", version_text());
	ready_report(x->services, &state);
	json_add_bool(v, "ready", !state.reason);
	json_add_string(v, "reason", wait_reason_name(state.reason));
	json_add(v, "you", asker_json(x));
}

static void
add_rest(struct json *v, struct exchange *x)
{
	const struct services *s = x->services;
	struct health_report state;
	struct registry_report devices;
	struct server_report server;

	registry_report(s->registry, &devices);
	server_report(s->server, &server);
	ready_report(s, &state);
	json_add_string(v, "backend", tls_backend());
	json_add_u64(v, "incarnation", s->incarnation);
	json_add_seconds(v, "started_at", s->started_at);
	json_add_double(v, "uptime_s", clock_seconds() - s->started);
	json_add_string(v, "detail", state.detail);
	json_add(v, "devices", devices_json(&devices));
	json_add(v, "spool", spool_json(s));
	json_add(v, "kept", kept_json(s));
	json_add(v, "lost", lost_json(s));
	json_add_double(v, "certificate_ends", (double)s->certificate_ends);
	json_add(v, "ca", ca_json(s, devices.not_renewed));
	if (x->who.roles & ROLE_READERS) {
		json_add_u64(v, "contested", devices.contested);
		json_add_u64(v, "locked_out", devices.locked_out);
		json_add(v, "clock", clock_json(s));
		json_add(v, "stuck", stuck_json(s));
		views_disk(v, x);
		json_add(v, "reports", metrics_reports(s));
	}
	json_add_u64(v, "connections", server.connections);
}

void
api_status(struct exchange *x)
{
	if (!may_read(x))
		return;
	struct json *v = json_object();
	add_first(v, x);
	if (x->who.roles & ROLE_SUSPENDED) {
		json_add(v, "jobs", json_array());
		exchange_json(x, 200, v);
		return;
	}
	add_rest(v, x);
	views_jobs(x, v);
}
