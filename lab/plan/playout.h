#ifndef PLAYOUT_H
#define PLAYOUT_H
#include "settings.h"

/*
 * How a job's rounds would go on a fleet: played by the simulator without training, round by round. A job that is longer than it is
 * worth to play is played for a while, and the rest counted like that.
 */
#define PLAN_PLAYOUT_TASKS 100000u /* played at most, about */
#define PLAN_PLAYOUT_ROUNDS 1000u
/* Who is there is drawn: a play that a few draws break off, and another does not, is one that waits now and then. */
#define PLAN_PLAYOUT_DRAWS 8u

struct plan_playout {
	uint64_t
	    rounds; /* until the job ends; 0: it says no number of rounds, reports or seconds */
	uint64_t played; /* of them, and what follows is of these */
	uint64_t reports;
	uint64_t bytes_up, bytes_down;
	double seconds, device_seconds, wasted_seconds;
	double *round_seconds; /* of each, ascending */
	double reports_share; /* of the devices, that are in a model at all */
	bool stuck; /* no round begins, or none comes to an end, in any draw */
	unsigned waits; /* so many draws broke off before the one that this is of */
	char reason[256]; /* why the first of them did */
};

struct plan_playout_want {
	const struct job_spec *job;
	const char *text; /* the document as submitted */
	size_t len;
	const struct fleet *fleet;
	const struct settings
	    *settings; /* [data] and [trainer] of the devices; none of them needs to be there */
	const char *init; /* file of the first weights; NULL: drawn */
};

/* plan_playout_deinit in either case. ERR_UNSUPPORTED, ERR_INVALID say what cannot be played. */
ERR_MUST_USE enum err plan_playout_play(
    struct plan_playout *out, const struct plan_playout_want *want, struct why *why);
void plan_playout_deinit(struct plan_playout *c);
/* The round that this share of them is shorter than, in seconds; NaN: none was played. */
double plan_playout_quantile(const struct plan_playout *c, double share);

#endif
