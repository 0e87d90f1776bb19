#include "api.h"
#include "clock.h"
#include "engine.h"
#include "registry.h"
#include "server.h"
#include "spool.h"
#include "tls.h"

#include <string.h>

void
api_health(struct exchange *x)
{
	struct json *v = json_object();

	json_add_string(v, "status", "ok");
	exchange_json(x, 200, v);
}

const char *
api_not_ready(const struct services *s)
{
	return spool_full(s->spool, 1) ? "the spool's quota is used up" : NULL;
}

void
api_ready(struct exchange *x)
{
	const char *why = api_not_ready(x->services);
	struct json *v = json_object();

	json_add_string(v, "status", why ? "not ready" : "ready");
	if (why)
		json_add_string(v, "reason", why);
	exchange_json(x, why ? 503 : 200, v);
}

void
api_ca(struct exchange *x)
{
	char pem[4096];
	size_t len = sizeof(pem);

	enum err e = x509_to_pem(pem, &len, &x->services->ca);
	if (e)
		exchange_failed(x, e, NULL);
	else
		exchange_bytes(x, 200, "application/x-pem-file", pem, strlen(pem));
}

static struct json *
devices_json(const struct services *s)
{
	struct json *v = json_object();
	uint64_t joined, active;

	registry_counts(s->registry, 300, &joined, &active);
	json_add_u64(v, "joined", joined);
	json_add_u64(v, "active", active);
	return v;
}

static struct json *
spool_json(const struct services *s)
{
	struct json *v = json_object();

	json_add_u64(v, "bytes", spool_used(s->spool));
	json_add_u64(v, "quota", s->config->spool_quota);
	return v;
}

void
api_status(struct exchange *x)
{
	const struct services *s = x->services;
	const char *why = api_not_ready(s);
	struct json *v = json_object();

	json_add_string(v, "version", RIVULET_VERSION);
	json_add_string(v, "backend", tls_backend());
	json_add_u64(v, "incarnation", s->incarnation);
	json_add_double(v, "started_at", s->started_at);
	json_add_double(v, "uptime_s", clock_wall() - s->started_at);
	json_add_bool(v, "ready", !why);
	json_add_string(v, "reason", why ? why : "");
	json_add(v, "devices", devices_json(s));
	json_add(v, "jobs",
	    engine_jobs_json(s->engine, x->who.roles & ROLE_READERS ? NULL : x->who.device));
	json_add(v, "spool", spool_json(s));
	json_add_u64(v, "connections", server_connections(s->server));
	exchange_json(x, 200, v);
}
