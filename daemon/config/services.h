#ifndef SERVICES_H
#define SERVICES_H
#include <stdatomic.h>
#include <stdint.h>

#include "wake.h"

/* What request handlers work with: made by main, alive as long as any thread, read-only but for what the pointed-to
 * objects lock themselves. */
struct services {
	/* Replaced whole on reload, of struct config, services_ca and services_tls (services_ca.h); connections hold the services_tls they were made
	 * with. */
	struct shared *config, *ca, *tls;
	/* The first configuration: what a reload cannot change is read here. */
	const struct config *fixed;
	struct store *store;
	struct engine *engine;
	struct registry *registry;
	struct models *models;
	struct spool *spool;
	struct archive *archive;
	struct folder *folder;
	struct audit *audit; /* counts refusals */
	struct age *age; /* may be NULL in tests: the clock is believed */
	struct spent *spent; /* may be NULL in tests, as the next one */
	struct walks *walks;
	struct health *health; /* may be NULL: health_note and health_reason know */
	struct reserve *reserve; /* may be NULL in tests */
	struct worker_pool *pool;
	struct worker_pool *slow; /* for what may take long; NULL (in tests): pool does that, too */
	struct budget *budget; /* may be NULL in tests */
	struct evalsets *sets; /* likewise */
	struct stop *stop; /* what takes long looks at it; may be NULL in tests */
	struct server *server;
	struct wake wake;
	/* Unix seconds: from when on the CA and the server's certificate in use are both valid; when the latter ends. */
	_Atomic int64_t certificate_begins, certificate_ends;
	struct key *sign_key; /* receipts and records; never TLS or CA */
	uint64_t incarnation;
	double started_at; /* Unix seconds */
	double started; /* the same moment by clock_seconds() */
};

#endif
