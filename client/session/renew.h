#ifndef RENEW_H
#define RENEW_H
#include <stdbool.h>
#include <stdint.h>

#include "err.h"

/*
 * Renews the certificate well before it expires, and also long after: POST /v1/renew accepts an expired one. The coordinator's clock
 * decides when it is time, if that clock is known, for the device's own may be wrong. A failure is logged and
 * tried again later; the old certificate is used as long as the coordinator accepts it.
 *
 * Two pauses delay a renewal. After a success no renewal is made because of the dates for a tenth of the certificate's life. A renewal that
 * the coordinator asks for, or makes necessary by a refusal, waits only a short pause, drawn from RENEW_PAUSE_MIN_S to RENEW_PAUSE_MAX_S,
 * which doubles once RENEW_CALM renewals in a row have not ended the requests or refusals. When a clock steps, the device's or the
 * coordinator's, every longer pause ends.
 */
#define RENEW_PAUSE_MIN_S 2.0
#define RENEW_PAUSE_MAX_S 30.0
#define RENEW_CALM 3

struct session;

enum renew_need {
	RENEW_NO,
	RENEW_DUE, /* old enough */
	RENEW_EXPIRED,
	RENEW_NOT_YET, /* not valid yet: the coordinator's clock was ahead when it issued the certificate */
	RENEW_SIGNER, /* the home lacks signer.pem, and a renewal brings it */
};

struct renew_facts {
	int64_t now; /* Unix seconds, by the best known clock */
	int64_t not_before, not_after; /* of the certificate */
	int64_t renew_after; /* from the coordinator; before not_before: not said */
	bool has_signer;
	/* 0..1: this device's place in the first quarter of the time left, so that a fleet does not renew all at once. */
	double spread;
};
/* *at: when the renewal becomes due by the certificate's dates, Unix seconds. */
enum renew_need renew_needed(const struct renew_facts *facts, int64_t *at);

/* Renews if it is time and the pause after the last failure is over. Blocks for one request. */
void renew_if_due(struct session *s);
/* Seconds until renew_if_due has something to do; 0: now. */
double renew_in(const struct session *s);
/* Renews whatever the date. `cause` is a word for the log. Errors of session_do and session_problem; ERR_STATE: another process
 * works in the home and will renew. */
ERR_MUST_USE enum err renew_now(struct session *s, const char *cause, struct why *why);

/* Called when the coordinator refused the certificate for its dates; `date` is the coordinator's clock, 0 if not said. Logs this once, and
 * renews unless the last renewal was too recent. True: renewed. */
bool renew_refused(struct session *s, int64_t date);
/* Called when the coordinator accepted the certificate. */
void renew_accepted(struct session *s);
/* Called with each answer about work. wanted: the coordinator asks for a renewal, whatever the date; then the device renews soon, but
 * spread over a fleet. busy: the device got a task and may be away for long; it renews as soon as the pauses allow. */
void renew_asked(struct session *s, bool wanted, bool busy);
/* Called when a clock stepped: ends long pauses. */
void renew_hurry(struct session *s);

#endif
