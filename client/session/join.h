#ifndef JOIN_H
#define JOIN_H
#include "identity.h"

/*
 * Becoming a device of a coordinator: the CA is fetched over an unverified connection on which nothing
 * secret is sent, compared with the fingerprint in the token, and only over a verified connection do token and CSR
 * follow. Repeating it is harmless: the key is made once and kept.
 */
struct join_options {
	const char *url; /* any spelling address_normalise takes */
	const char *home;
	const char *name; /* NULL: the host name, or, again, the one of before */
	bool
	    again; /* although the home has joined: with its key, and with what it has of addresses */
};

enum join_state { JOIN_NEW, JOIN_ALREADY, JOIN_AGAIN };

/* Is this home enrolled with that coordinator already? Then the token is not needed at all. ERR_NOTFOUND if it has not
 * joined, ERR_EXISTS if it has joined another one (unless the token later proves it the same). */
ERR_MUST_USE enum err join_check(const struct join_options *options, struct why *why);
/* Of a home that has joined: is its certificate good no more, so that it must join again? As membership_lost. */
bool join_lost(const struct join_options *options);
/* token: text as `rivulet token create` printed it, white space at the end allowed. ERR_INVALID bad token, ERR_DENIED the
 * fingerprint differs or the coordinator refuses, ERR_EXISTS another coordinator's home, ERR_STATE to join again while an agent works in the home, else as transport_do. */
ERR_MUST_USE enum err join_run(struct identity *out, enum join_state *state,
    const struct join_options *options, const char *token, struct why *why);

#endif
