#ifndef SERVICES_CA_H
#define SERVICES_CA_H
#include <stdbool.h>
#include <stdint.h>

#include "hash.h"
#include "x509.h"

struct key;
struct tls_context;

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

#endif
