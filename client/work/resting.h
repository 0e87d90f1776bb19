#ifndef RESTING_H
#define RESTING_H
#include "backoff.h"
#include "messages.h"

/*
 * Jobs whose tasks failed on this device, each of which rests for a while, longer with every failure in a row, so that the others go on. The
 * device asks for no tasks of them meanwhile. In memory alone: a restart of the agent may have mended what was wrong.
 */
#define RESTING_MAX MESSAGES_LIST_MAX
#define RESTING_REST_MAX_S 3600.0

struct resting_job {
	char job[33];
	unsigned failures; /* in a row */
	double until; /* backoff_now(): it rests; it is kept for its failures after that */
};

struct resting {
	struct resting_job jobs[RESTING_MAX];
	size_t count;
	struct prng rng;
};

void resting_init(struct resting *r, uint64_t seed);
/* A task of the job failed after so many seconds of work. Who fails three times in a row, and more, rests so long that all who do
 * have half of the device's time at most. False: as many as there is room for rest already. */
ERR_MUST_USE bool resting_failed(
    struct resting *r, const char *job, double now, double worked_seconds);
/* One of its tasks was done: it begins anew. */
void resting_done(struct resting *r, const char *job);
/* How long the job still rests; 0: it does not. */
double resting_left(const struct resting *r, const char *job, double now);
/* Until the next of them has rested; INFINITY: none rests. */
double resting_next(const struct resting *r, double now);
/* Names them in an offer. */
void resting_offer(const struct resting *r, struct offer *o, double now);

#endif
