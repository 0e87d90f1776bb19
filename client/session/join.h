#ifndef JOIN_H
#define JOIN_H
#include "identity.h"

/*
 * Becoming a device of a coordinator: the CA is fetched over an unverified connection on which nothing
 * secret is sent, and compared with the fingerprint in the token; token and CSR are sent over a verified connection
 * only. Repeating a join is harmless: the key is made once and kept, and nothing is done in a home that has joined, unless the
 * coordinator refuses the home's certificate: then the device joins again with its old key.
 */
struct join_options {
	const char *url; /* any spelling address_normalise takes */
	const char *home;
	const char *name; /* NULL: the host name; on joining again the device's old name */
	const char *
	    token; /* as `rivulet token create` printed it, white space at the end allowed; NULL: none */
	bool (*cancel)(void *context); /* as of transport_options */
	void *context;
};

enum join_state { JOIN_NEW, JOIN_ALREADY, JOIN_AGAIN };

/* ERR_NOTFOUND: a token is needed, and there is none (a home that has joined needs none, so that a repeat succeeds after the token's file
 * is gone). ERR_INVALID bad token, ERR_DENIED the fingerprint differs or the coordinator refuses, ERR_EXISTS another coordinator's home,
 * ERR_STATE the device must join again and an agent works in the home, else errors of transport_do. */
ERR_MUST_USE enum err join_run(struct identity *out, enum join_state *state,
    const struct join_options *options, struct why *why);
/* Writes what the user should know after join_run; mostly "". */
void join_remark(struct why *out, const struct identity *id, enum join_state state);

#endif
