#ifndef JOB_BACKOFF_H
#define JOB_BACKOFF_H
#include "backoff.h"
#include "messages.h"

/*
 * Jobs whose tasks failed on this device. Each of them is paused ("rests") for a while, longer with every failure in a row, so that other
 * jobs go on; the device asks for no tasks of a resting job. In memory alone: a restart of the agent may have removed the cause.
 */
#define JOB_BACKOFF_MAX MESSAGES_LIST_MAX
#define JOB_BACKOFF_REST_MAX_S 3600.0

struct job_backoff_job {
	char job[33];
	unsigned failures; /* in a row */
	/* backoff_now(): the job rests until then; the entry stays afterwards to count failures. */
	double until;
};

struct job_backoff {
	struct job_backoff_job jobs[JOB_BACKOFF_MAX];
	size_t count;
	struct prng rng;
};

void job_backoff_init(struct job_backoff *r, uint64_t seed);
/* Called when a task of the job failed after so many seconds of work. A job that fails three times in a row or more rests for so long that
 * all such jobs together take at most half of the device's time. False: JOB_BACKOFF_MAX jobs rest already. */
ERR_MUST_USE bool job_backoff_failed(
    struct job_backoff *r, const char *job, double now, double worked_seconds);
/* Called when a task of the job was done: forgets the job's failures. */
void job_backoff_done(struct job_backoff *r, const char *job);
/* Seconds that the job still rests; 0: it does not rest. */
double job_backoff_left(const struct job_backoff *r, const char *job, double now);
/* Seconds until the next job has rested; INFINITY: none rests. */
double job_backoff_next(const struct job_backoff *r, double now);
/* Writes the resting jobs into an offer. */
void job_backoff_offer(const struct job_backoff *r, struct offer *o, double now);

#endif
