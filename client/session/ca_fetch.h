#ifndef CA_FETCH_H
#define CA_FETCH_H
#include "trust.h"

/* Fetches a coordinator's CA, known by its fingerprint in a token: GET /v1/ca over an unverified connection on which nothing secret
 * is sent; the CA is trusted only if its hash is the fingerprint. After a change of the CA the coordinator also sends the new CA as the
 * old one certified it: a CA that the token's CA has signed is trusted, too. */
#define CA_FETCH_PEM_MAX 16384

struct ca_fetch_from {
	const char *url; /* as address_normalise makes it */
	const uint8_t *fingerprint; /* HASH_LEN bytes */
	bool (*cancel)(void *context); /* see transport_options.cancel */
	void *context;
};

/* pem: CA_FETCH_PEM_MAX bytes. ERR_DENIED if no certificate that came has this SHA-256, else as transport_do and session_problem. */
ERR_MUST_USE enum err ca_fetch(
    struct trust *out, char *pem, const struct ca_fetch_from *from, struct why *why);

#endif
