#ifndef RESTING_H
#define RESTING_H
#include "backoff.h"
#include "messages.h"

/*
 * Jobs whose tasks failed on this device. Each of them is paused ("rests") for a while, longer with every failure in a row, so that other
 * jobs go on; the device asks for no tasks of a resting job. In memory alone: a restart of the agent may have removed the cause.
 */
#define RESTING_MAX MESSAGES_LIST_MAX
#define RESTING_REST_MAX_S 3600.0

struct resting_job {
	char job[33];
	unsigned failures; /* in a row */
	/* backoff_now(): the job rests until then; the entry stays afterwards to count failures. */
	double until;
};

struct resting {
	struct resting_job jobs[RESTING_MAX];
	size_t count;
	struct prng rng;
};

void resting_init(struct resting *r, uint64_t seed);
/* Called when a task of the job failed after so many seconds of work. A job that fails three times in a row or more rests for so long that
 * all such jobs together take at most half of the device's time. False: RESTING_MAX jobs rest already. */
ERR_MUST_USE bool resting_failed(
    struct resting *r, const char *job, double now, double worked_seconds);
/* Called when a task of the job was done: forgets the job's failures. */
void resting_done(struct resting *r, const char *job);
/* Seconds that the job still rests; 0: it does not rest. */
double resting_left(const struct resting *r, const char *job, double now);
/* Seconds until the next job has rested; INFINITY: none rests. */
double resting_next(const struct resting *r, double now);
/* Writes the resting jobs into an offer. */
void resting_offer(const struct resting *r, struct offer *o, double now);

#endif
