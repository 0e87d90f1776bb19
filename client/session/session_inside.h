#ifndef SESSION_INSIDE_H
#define SESSION_INSIDE_H
#include "backoff.h"
#include "credentials.h"
#include "session.h"
#include "skew.h"

/* The inside of struct session, for session.c, renew.c and rekey.c alone. */
struct session {
	char home[PATH_MAX]; /* "": over a socket, without an identity */
	bool locked; /* the caller of session_open holds the home's lock */
	char *bearer; /* "Authorization: Bearer ...", or NULL */
	struct credentials held;
	struct transport *transport;
	char urls[IDENTITY_URLS_MAX][ADDRESS_MAX];
	size_t url_count, current;
	struct backoff backoff;
	bool (*cancel)(void *context);
	void *context;
	const struct events *events;
	struct skew skew; /* the coordinator's clock, from answers over verified connections */
	int64_t clock_told; /* the offset of the clocks that was last reported as an event */
	double contact; /* wall clock of the last answer; 0: none yet */
	uint64_t sent, received; /* bytes */
	char request[REQUEST_ID_MAX]; /* of the last exchange; "": not known */
	unsigned revision; /* the number that session_revision returns */
	/* Renewal; times are of backoff_now(). */
	bool renew_wanted; /* the coordinator asks for a renewal, whatever the dates */
	/* No renewal because of the dates before this time: the pause after a success. */
	double renew_dates_at;
	double renew_at; /* no renewal at all before this time: the short pause */
	unsigned renew_failures; /* in a row */
	/* Renewals in a row that the coordinator asked for, or that a refusal led to, and that have not ended the requests or refusals. */
	unsigned renew_asked, renew_refused;
	bool refused; /* the last answer refused the certificate for its dates */
	double spread; /* 0..1: this device's place among those that became due together */
	bool changing; /* a renewal or rotation is in progress: no other one begins */
};

/* Reads the credentials from the home again, for the next request on; on failure the old ones stay. */
ERR_MUST_USE enum err session_reload(struct session *s, struct why *why);
/* One request to each address in turn, without renewals and retries. */
ERR_MUST_USE enum err session_try(struct session *s, const struct session_call *call,
    struct transport_answer *out, struct why *why);

#endif
