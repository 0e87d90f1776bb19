#ifndef SESSION_INSIDE_H
#define SESSION_INSIDE_H
#include "credentials.h"
#include "session.h"

/* The inside of struct session, for session.c, renew.c and rekey.c alone. */
struct session {
	char home[PATH_MAX]; /* "": over a socket, without an identity */
	bool locked; /* whoever opened it holds the home's lock */
	char *bearer; /* "Authorization: Bearer ...", or NULL */
	struct credentials held;
	struct transport *transport;
	char urls[IDENTITY_URLS_MAX][ADDRESS_MAX];
	size_t url_count, current;
	struct backoff backoff;
	bool (*cancel)(void *context);
	void *context;
	const struct events *events;
	/* The coordinator's clock minus ours, seconds, from answers over verified connections. */
	bool clock_known;
	int64_t clock_offset, clock_told;
	/* Renewal. */
	bool renew_wanted; /* the coordinator asked for it or refused the certificate as expired */
	double renew_at; /* backoff_now(): not tried before */
	unsigned renew_failures;
	double spread; /* 0..1: this device's place among those that became due together */
	bool changing; /* a renewal or rotation is on its way: no other from within */
};

/* Reads the home again and uses it from the next request on; on failure all stays as it was. */
ERR_MUST_USE enum err session_reload(struct session *s, struct why *why);
/* One request to each address in turn, without renewals and retries. */
ERR_MUST_USE enum err session_try(struct session *s, const struct session_call *call,
    struct transport_answer *out, struct why *why);

#endif
