#ifndef CREDENTIALS_H
#define CREDENTIALS_H
#include "identity.h"
#include "key.h"
#include "trust.h"

/* What a home holds to show and to check with: key, certificate, CAs and the coordinator's signer, read and found to fit
 * each other. */
struct credentials {
	struct identity identity;
	uint8_t device[32];
	struct key *key;
	struct x509_info cert; /* its dates and key */
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
