#include <math.h>
#include <stdio.h>
#include <string.h>

#include "archive.h"
#include "config.h"
#include "drive.h"
#include "health.h"
#include "job_list.h"
#include "log.h"
#include "metrics_inside.h"
#include "models.h"
#include "registry.h"
#include "reserve.h"
#include "route.h"
#include "server.h"
#include "services.h"
#include "services_ca.h"
#include "shared.h"
#include "spool.h"
#include "store.h"
#include "usage.h"
#include "x509.h"

static void
name_routes(struct metrics_view *v, const struct services *s)
{
	const struct route_table *t = server_routes(s->server);

	v->route_count = t->count;
	for (size_t i = 0; i < t->count; i++)
		snprintf(v->routes[i], METRICS_ROUTE_BYTES, "%s %s",
		    http_verb_name(t->rows[i].verb), t->rows[i].pattern);
	snprintf(v->routes[t->count], METRICS_ROUTE_BYTES, "none");
}

static void
read_server(struct metrics_view *v, const struct services *s)
{
	struct server_report *r = &v->server;

	server_report(s->server, r);
	for (size_t i = 0; i <= SERVER_ROUTES_MAX; i++)
		for (size_t k = 0; k < SERVER_CLASSES; k++)
			v->by_class[k] += r->responses[i][k];
	for (size_t i = 0; i < SERVER_HANDSHAKES; i++)
		v->handshakes_total += r->handshakes[i];
	v->handshakes_failed_total =
	    r->handshakes[HANDSHAKE_OTHER_CA] + r->handshakes[HANDSHAKE_FAILED];
	name_routes(v, s);
	/* What no route answered is counted behind all that there may be. */
	memmove(
	    r->responses[v->route_count], r->responses[SERVER_ROUTES_MAX], sizeof(r->responses[0]));
}

static void
read_disk(struct metrics_view *v, const struct services *s)
{
	const struct config *c = shared_take(s->config);
	struct usage u;

	v->disk = (struct metrics_disk){NAN, NAN, NAN, NAN, NAN, NAN, NAN};
	if (usage_watch_last(s->usage, &u))
		v->disk = (struct metrics_disk){(double)u.free_bytes, (double)u.total_bytes,
		    (double)u.need_bytes, (double)u.models_bytes, (double)u.database_bytes,
		    (double)u.lost.files, (double)u.lost.bytes};
	v->reserve_bytes = s->reserve ? reserve_held(s->reserve) : 0;
	v->reserve_wanted = c->reserve;
	shared_give(s->config, c);
	spool_report(s->spool, &v->spool);
	archive_report(s->archive, &v->archive);
}

static void
read_certificates(struct metrics_view *v, const struct services *s)
{
	const struct services_ca *ca = shared_take(s->ca);
	struct x509_info info;

	v->certificate_ends = (double)s->certificate_ends;
	v->ca_generation = ca->generation;
	v->ca_rotating = ca->rotating;
	v->ca_ends = x509_parse(&info, &ca->current, NULL) ? NAN : (double)info.not_after;
	shared_give(s->ca, ca);
}

void
metrics_view_read(struct metrics_view *v, const struct services *s)
{
	jobs_report(s->engine, &v->engine);
	rounds_stuck(s->engine, v->stuck);
	store_report(s->store, &v->store);
	registry_report(s->registry, &v->registry);
	models_report(s->models, &v->models);
	health_report(s->health, &v->health);
	age_report(s->age, &v->age);
	read_server(v, s);
	read_disk(v, s);
	read_certificates(v, s);
	v->log_skipped = log_skipped();
	v->incarnation = s->incarnation;
}
