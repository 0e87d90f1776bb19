#ifndef ROLE_H
#define ROLE_H
#include <stdbool.h>
#include <stdint.h>

#include "hash.h"
#include "key.h"
#include "problem.h"

enum role {
	ROLE_NONE = 0,
	ROLE_ANYONE = 1u << 0,
	ROLE_DEVICE = 1u << 1,
	ROLE_ADMIN = 1u << 2,
	ROLE_READER = 1u << 3,
	ROLE_SUBMITTER = 1u << 4,
	ROLE_EXPIRED = 1u << 5, /* an active identity whose certificate's dates do not fit */
	ROLE_ROTATED = 1u << 6, /* an active identity, shown by the key before its present one */
	ROLE_SUSPENDED =
	    1u << 8, /* a suspended identity, by its present key: may renew its certificate */
	ROLE_METRICS = 1u << 7, /* of access tokens alone: may read figures, and no device */
	/* Identities with a valid certificate or access token, but for ROLE_METRICS. */
	ROLE_CERTIFIED = ROLE_DEVICE | ROLE_READER | ROLE_SUBMITTER | ROLE_ADMIN,
	/* Identities that may read what the fleet does. */
	ROLE_READERS = ROLE_READER | ROLE_SUBMITTER | ROLE_ADMIN,
};

/* Who asks. Looked up at every request: registry state, key, certificate date or token. */
struct identity {
	unsigned roles; /* set of enum role; ROLE_ANYONE always */
	bool has_cert;
	bool by_token; /* identified by an access token; then device is not set */
	uint8_t token[8]; /* id of the access token */
	uint8_t device[HASH_LEN];
	/* The owner of its jobs and models: the device's id, SHA-256("token" || token id), or for a token with an owner's name
	 * SHA-256("owner" || name); zero on the admin socket. */
	uint8_t owner[HASH_LEN];
	char owner_name[64]; /* the owner's name of an access token; "" otherwise */
	uint8_t spki[KEY_SPKI_LEN];
	uint64_t generation; /* of the CA that issued the certificate; 0: not known */
	enum problem_type problem; /* why certificate or token give no role */
	/* After a restore: the key is not on record, but a certificate of this CA names the device, and the key claims to be its key. */
	bool claims;
	int64_t issued_at; /* with claims: when the certificate was issued, Unix seconds */
};

#endif
