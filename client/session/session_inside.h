#ifndef SESSION_INSIDE_H
#define SESSION_INSIDE_H
#include "backoff.h"
#include "credentials.h"
#include "session.h"
#include "skew.h"

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
	/* The clocks, from answers over verified connections; the offset that was told last. */
	struct skew skew;
	int64_t clock_told;
	unsigned steps; /* of either clock, and of refusals that came to an end */
	/* Renewal; moments of backoff_now(). */
	bool renew_wanted; /* the coordinator asks for it, whatever the dates */
	double renew_dates_at; /* not before for the dates' sake: put off after a success */
	double renew_at; /* not before for whatever cause: the short back-off */
	unsigned renew_failures; /* in a row */
	/* Renewals in a row that the coordinator asked for, or that a refusal led to, without an answer that was content. */
	unsigned renew_asked, renew_refused;
	bool refused; /* the last answer refused the certificate for its dates */
	double spread; /* 0..1: this device's place among those that became due together */
	bool changing; /* a renewal or rotation is on its way: no other from within */
};

/* Reads the home again and uses it from the next request on; on failure all stays as it was. */
ERR_MUST_USE enum err session_reload(struct session *s, struct why *why);
/* One request to each address in turn, without renewals and retries. */
ERR_MUST_USE enum err session_try(struct session *s, const struct session_call *call,
    struct transport_answer *out, struct why *why);

#endif
