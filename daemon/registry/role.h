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
	/* Who has a certificate of its own that is in order. */
	ROLE_CERTIFIED = ROLE_DEVICE | ROLE_READER | ROLE_SUBMITTER | ROLE_ADMIN,
	/* Who may read what the fleet does. */
	ROLE_READERS = ROLE_READER | ROLE_SUBMITTER | ROLE_ADMIN,
};

/* Who asks. Looked up at every request: registry state, key, certificate date or token. */
struct identity {
	unsigned roles; /* set of enum role; ROLE_ANYONE always */
	bool has_cert;
	bool by_token; /* an access token; then device is not set */
	uint8_t token[8]; /* its id */
	uint8_t device[HASH_LEN];
	/* Whose jobs and models are its own: the device, SHA-256("token" || token id), or of a token with an owner
	 * SHA-256("owner" || name); zero on the admin socket. */
	uint8_t owner[HASH_LEN];
	char owner_name[64]; /* of such a token */
	uint8_t spki[KEY_SPKI_LEN];
	uint64_t generation; /* of the CA that its certificate is of; 0: not known */
	enum problem_type problem; /* why a certificate gives no role */
	/* A key that a restored state does not know, with a certificate of this CA that names the device: it asks for its place. */
	bool claims;
	int64_t issued_at; /* of that certificate, Unix seconds */
};

#endif
