#include "job_backoff.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "hex.h"

#define OFTEN 3 /* failures in a row */

void
job_backoff_init(struct job_backoff *r, uint64_t seed)
{
	*r = (struct job_backoff){.count = 0};
	prng_seed(&r->rng, seed);
}

static struct job_backoff_job *
find(struct job_backoff *r, const char *job)
{
	for (size_t i = 0; i < r->count; i++)
		if (strcmp(r->jobs[i].job, job) == 0)
			return &r->jobs[i];
	return NULL;
}

static size_t
count_resting(const struct job_backoff *r, double now)
{
	size_t n = 0;

	for (size_t i = 0; i < r->count; i++)
		n += r->jobs[i].until > now;
	return n;
}

/* A new one, in the place of the job that has not rested for the longest time; NULL: all rest. */
static struct job_backoff_job *
add(struct job_backoff *r, const char *job, double now)
{
	struct job_backoff_job *j = &r->jobs[r->count];

	if (r->count == JOB_BACKOFF_MAX) {
		j = &r->jobs[0];
		for (size_t i = 1; i < r->count; i++)
			if (r->jobs[i].until < j->until)
				j = &r->jobs[i];
		if (j->until > now)
			return NULL;
	} else {
		r->count++;
	}
	*j = (struct job_backoff_job){.until = now};
	snprintf(j->job, sizeof(j->job), "%s", job);
	return j;
}

bool
job_backoff_failed(struct job_backoff *r, const char *job, double now, double worked_seconds)
{
	struct job_backoff_job *j = find(r, job);

	if (!j)
		j = add(r, job, now);
	if (!j)
		return false;
	/* Full jitter, as everywhere: devices that failed together do not come back together. */
	double rest = backoff_limit(j->failures) * prng_double(&r->rng);
	if (++j->failures >= OFTEN) {
		j->until = now;
		double least = 2 * worked_seconds * (double)(1 + count_resting(r, now));
		rest = fmax(rest, fmin(least, JOB_BACKOFF_REST_MAX_S));
	}
	j->until = now + rest;
	return true;
}

void
job_backoff_done(struct job_backoff *r, const char *job)
{
	struct job_backoff_job *j = find(r, job);

	if (j)
		*j = r->jobs[--r->count];
}

double
job_backoff_left(const struct job_backoff *r, const char *job, double now)
{
	for (size_t i = 0; i < r->count; i++)
		if (strcmp(r->jobs[i].job, job) == 0 && r->jobs[i].until > now)
			return r->jobs[i].until - now;
	return 0;
}

double
job_backoff_next(const struct job_backoff *r, double now)
{
	double next = INFINITY;

	for (size_t i = 0; i < r->count; i++)
		if (r->jobs[i].until > now)
			next = fmin(next, r->jobs[i].until - now);
	return next;
}

void
job_backoff_offer(const struct job_backoff *r, struct offer *o, double now)
{
	o->resting_count = 0;
	for (size_t i = 0; i < r->count; i++) {
		struct offer_resting *to = &o->resting[o->resting_count];
		if (r->jobs[i].until <= now)
			continue;
		if (!hex_decode(to->job, sizeof(to->job), r->jobs[i].job, strlen(r->jobs[i].job)))
			continue;
		to->seconds = (uint32_t)ceil(r->jobs[i].until - now);
		o->resting_count++;
	}
}
