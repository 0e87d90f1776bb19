#ifndef SERVICES_H
#define SERVICES_H
#include <stdatomic.h>
#include <stdint.h>

#include "config.h"
#include "hash.h"
#include "wake.h"
#include "x509.h"

/* The CA as it stands. */
struct services_ca {
	struct x509_cert current;
	struct key *key;
	uint8_t hash[HASH_LEN]; /* SHA-256 of current's DER: the fingerprint in tokens */
	uint64_t generation; /* of current; the first is 1 */
	/* While the CA is replaced the next one is trusted too, and issues what is renewed. */
	bool rotating;
	struct x509_cert next;
	struct key *next_key;
	/* After that: the one before, which nobody trusts here, for tokens that name it; and current as the one before
	 * certified it. */
	bool has_old;
	struct x509_cert old, cross;
	struct x509_cert signer; /* of the key that signs receipts and records */
};

/* The server's certificate, and the context that shows it. */
struct services_tls {
	struct tls_context *context;
	struct key *key;
	struct x509_cert cert;
};

/* What request handlers work with: made by main, alive as long as any thread, read-only but for what the pointed-to
 * objects lock themselves. */
struct services {
	/* Replaced whole on reload, of struct config, services_ca and services_tls; connections hold the services_tls they were made
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
