#ifndef CREDENTIALS_H
#define CREDENTIALS_H
#include "identity.h"
#include "key.h"
#include "trust.h"

/* The credentials of a home: the device's key and certificate, the CAs and the key that signs receipts; read, and checked against
 * each other. */
struct credentials {
	struct identity identity;
	uint8_t device[32];
	struct key *key;
	struct x509_info cert; /* the contents of cert.pem */
	struct trust trust;
	bool has_signer;
	uint8_t signer[KEY_SPKI_LEN];
	char *cert_pem, *ca_pem;
};

/* ERR_NOTFOUND: not joined. ERR_CORRUPT: a file is damaged, or two do not belong together (why names them). On failure
 * nothing is left to free. */
ERR_MUST_USE enum err credentials_load(struct credentials *out, const char *home, struct why *why);
void credentials_deinit(struct credentials *c);

#endif
