#ifndef SERVICES_H
#define SERVICES_H
#include <stdint.h>

#include "config.h"
#include "hash.h"
#include "key.h"
#include "x509.h"

/* What request handlers work with: made by main, alive as long as any thread, read-only but for what the pointed-to
 * objects lock themselves. */
struct services {
	_Atomic(const struct config *)
	    config; /* replaced whole on reload; old ones live until the end */
	struct store *store;
	struct engine *engine;
	struct registry *registry;
	struct models *models;
	struct spool *spool;
	struct keep *keep;
	struct folder *folder;
	struct audit *audit; /* counts refusals */
	struct health *health; /* may be NULL: health_note and health_reason know */
	struct worker_pool *pool;
	struct server *server;
	struct x509_cert ca;
	struct key *ca_key;
	struct key *sign_key; /* receipts and records; never TLS or CA */
	struct x509_cert sign_cert;
	uint8_t ca_hash[HASH_LEN]; /* SHA-256 of the CA's DER: the fingerprint in tokens */
	uint64_t incarnation;
	double started_at; /* Unix seconds */
};

#endif
