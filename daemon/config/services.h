#ifndef SERVICES_H
#define SERVICES_H
#include <stdatomic.h>
#include <stdint.h>

#include "wake.h"

/* What request handlers work with: made by main, alive as long as any thread, read-only but for what the pointed-to
 * objects lock themselves. */
struct services {
	/* A struct config, services_ca and services_tls, each replaced whole on reload; a connection holds the services_tls that it was
	 * made with. */
	struct shared *config, *ca, *tls;
	/* The configuration of the start: settings that a reload cannot change are read here. */
	const struct config *fixed;
	struct store *store;
	struct engine *engine;
	struct registry *registry;
	struct models *models;
	struct spool *spool;
	struct archive *archive;
	struct folder *folder;
	struct audit *audit; /* counts refusals */
	struct age *age; /* may be NULL in tests: then the clock is believed */
	struct spent *spent; /* may be NULL in tests */
	struct walks *walks; /* may be NULL in tests */
	struct health *health; /* may be NULL: health_note and health_reason accept that */
	struct reserve *reserve; /* may be NULL in tests */
	struct worker_pool *pool;
	struct worker_pool *slow; /* for requests that may take long; NULL in tests: pool is used */
	struct worker_pool *aside; /* a worker that only reports; NULL in tests: pool is used */
	struct budget *budget; /* may be NULL in tests */
	struct evalsets *sets; /* may be NULL in tests */
	struct usage_watch *usage; /* may be NULL in tests */
	struct stop *stop; /* asks long work to end early; may be NULL in tests */
	struct answers *answers; /* NULL but in tests: keeps what is answered */
	struct server *server;
	struct wake wake; /* parked requests of devices, which wait for work */
	struct wake
	    changed; /* parked requests of readers, which wait for a change of a job (jobs/change.h) */
	/* Unix seconds: from when on CA and server certificate in use are both valid; when the server certificate ends. */
	_Atomic int64_t certificate_begins, certificate_ends;
	struct key *sign_key; /* signs receipts and records; never used for TLS or as CA */
	uint64_t incarnation;
	double started_at; /* Unix seconds */
	double started; /* the moment of started_at by clock_seconds() */
};

#endif
