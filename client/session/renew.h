#ifndef RENEW_H
#define RENEW_H
#include <stdbool.h>
#include <stdint.h>

#include "err.h"

/*
 * Renewing the certificate well before it expires, and also long after: POST /v1/renew takes an expired one. When it is time
 * is judged by the coordinator's clock where that is known, for the device's own may be wrong. A failure is logged and
 * tried again later; the old certificate is used as long as it is taken.
 *
 * Two moments keep a renewal waiting. After a success none is made for the dates' sake for a tenth of the certificate's life. What the
 * coordinator asks for, or makes necessary by a refusal, knows only a short pause: RENEW_PAUSE_MIN_S to RENEW_PAUSE_MAX_S, drawn, which
 * doubles once that many renewals in a row (RENEW_CALM) have not put an end to it. A clock that steps, here or there, ends every longer
 * pause.
 */
#define RENEW_PAUSE_MIN_S 2.0
#define RENEW_PAUSE_MAX_S 30.0
#define RENEW_CALM 3

struct session;

enum renew_need {
	RENEW_NO,
	RENEW_DUE, /* old enough */
	RENEW_EXPIRED,
	RENEW_NOT_YET, /* not valid yet: whoever made it had a clock that was ahead */
	RENEW_SIGNER, /* the home lacks signer.pem, and a renewal brings it */
};

struct renew_facts {
	int64_t now; /* Unix seconds, as well as is known */
	int64_t not_before, not_after; /* of the certificate */
	int64_t renew_after; /* what the coordinator said; before the certificate's time: nothing */
	bool has_signer;
	/* 0..1: within the first quarter of the time left, so that a fleet does not come at once. */
	double spread;
};
/* *at: when it becomes due by its dates, Unix seconds. */
enum renew_need renew_needed(const struct renew_facts *facts, int64_t *at);

/* Renews if it is time and no failure was too recent. Blocks as one request does. */
void renew_if_due(struct session *s);
/* Seconds until renew_if_due has something to do; 0: now. */
double renew_in(const struct session *s);
/* Renews whatever the date. `cause` is a word for the log. As session_do and session_problem; ERR_STATE: another process
 * works in the home and will do it. */
ERR_MUST_USE enum err renew_now(struct session *s, const char *cause, struct why *why);

/* The coordinator refused the certificate for its dates; `date` is its clock, 0 if it did not say. Says so once, and renews unless it is
 * too soon. True: renewed. */
bool renew_refused(struct session *s, int64_t date);
/* It took the certificate. */
void renew_accepted(struct session *s);
/* With each answer about work: does the coordinator ask for a renewal, whatever the date? Then soon, but not all devices at once; a busy
 * one, which may be long in coming back, as soon as it may. */
void renew_asked(struct session *s, bool wanted, bool busy);
/* A clock stepped: pauses that were made by it are worth nothing. */
void renew_hurry(struct session *s);

#endif
