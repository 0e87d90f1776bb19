#ifndef JOIN_H
#define JOIN_H
#include "identity.h"

/*
 * Becoming a device of a coordinator: the CA is fetched over an unverified connection on which nothing
 * secret is sent, compared with the fingerprint in the token, and only over a verified connection do token and CSR
 * follow. Repeating it is harmless: the key is made once and kept, and nothing is done in a home that has joined, unless the
 * coordinator refuses its certificate: then it joins again with its key.
 */
struct join_options {
	const char *url; /* any spelling address_normalise takes */
	const char *home;
	const char *name; /* NULL: the host name, or, again, the one of before */
	const char *
	    token; /* as `rivulet token create` printed it, white space at the end allowed; NULL: none */
	bool (*cancel)(void *context); /* as of transport_options */
	void *context;
};

enum join_state { JOIN_NEW, JOIN_ALREADY, JOIN_AGAIN };

/* ERR_NOTFOUND: a token is needed, and there is none. A home that has joined needs none, so that a repeat succeeds where its file is gone.
 * ERR_INVALID bad token, ERR_DENIED the fingerprint differs or the coordinator refuses, ERR_EXISTS another coordinator's home, ERR_STATE to join
 * again while an agent works in the home, else as transport_do. */
ERR_MUST_USE enum err join_run(struct identity *out, enum join_state *state,
    const struct join_options *options, struct why *why);
/* What people should know of a home that join_run left like this; "" mostly. */
void join_remark(struct why *out, const struct identity *id, enum join_state state);

#endif
