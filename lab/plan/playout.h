#ifndef PLAYOUT_H
#define PLAYOUT_H
#include "settings.h"

/*
 * How a job's rounds would go on a fleet: played by the simulator without training, round by round. Of a long job only the first rounds are
 * played, and the rest is extrapolated from them.
 */
#define PLAN_PLAYOUT_TASKS 100000u /* tasks played at most, about */
#define PLAN_PLAYOUT_ROUNDS 1000u /* rounds played at most */
/* Draws of which devices are available when: if the job is stuck in one draw, and not in another, its rounds wait now and then. */
#define PLAN_PLAYOUT_DRAWS 8u

struct plan_playout {
	/* Rounds until the job ends; 0: the job's `stop` has no number of rounds, reports or seconds. */
	uint64_t rounds;
	uint64_t played; /* rounds that were played; the members below are of these rounds */
	uint64_t reports;
	uint64_t bytes_up, bytes_down;
	double seconds, device_seconds, wasted_seconds;
	double *round_seconds; /* duration of each round, ascending */
	double reports_share; /* share of the devices that have a delta in a model */
	bool stuck; /* no round begins, or none ends, in any draw */
	unsigned waits; /* draws that were stuck before the draw of these figures */
	char reason[256]; /* why the first draw was stuck */
};

struct plan_playout_want {
	const struct job_spec *job;
	const char *text; /* the document as submitted */
	size_t len;
	const struct fleet *fleet;
	/* [data] and [trainer] of the devices; may be missing there. */
	const struct settings *settings;
	const char *init; /* file of the first weights; NULL: drawn */
};

/* Plays. The caller calls plan_playout_deinit in either case. ERR_UNSUPPORTED and ERR_INVALID say what cannot be played. */
ERR_MUST_USE enum err plan_playout_play(
    struct plan_playout *out, const struct plan_playout_want *want, struct why *why);
void plan_playout_deinit(struct plan_playout *c);
/* The quantile of round durations, in seconds: so great a share of the rounds is shorter; NaN: no round was played. */
double plan_playout_quantile(const struct plan_playout *c, double share);

#endif
