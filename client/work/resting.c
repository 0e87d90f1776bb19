#include "resting.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "hex.h"

#define OFTEN 3 /* failures in a row */

void
resting_init(struct resting *r, uint64_t seed)
{
	*r = (struct resting){.count = 0};
	prng_seed(&r->rng, seed);
}

static struct resting_job *
find(struct resting *r, const char *job)
{
	for (size_t i = 0; i < r->count; i++)
		if (strcmp(r->jobs[i].job, job) == 0)
			return &r->jobs[i];
	return NULL;
}

static size_t
count_resting(const struct resting *r, double now)
{
	size_t n = 0;

	for (size_t i = 0; i < r->count; i++)
		n += r->jobs[i].until > now;
	return n;
}

/* A new one, in the place of the job that has not rested for the longest time; NULL: all rest. */
static struct resting_job *
add(struct resting *r, const char *job, double now)
{
	struct resting_job *j = &r->jobs[r->count];

	if (r->count == RESTING_MAX) {
		j = &r->jobs[0];
		for (size_t i = 1; i < r->count; i++)
			if (r->jobs[i].until < j->until)
				j = &r->jobs[i];
		if (j->until > now)
			return NULL;
	} else {
		r->count++;
	}
	*j = (struct resting_job){.until = now};
	snprintf(j->job, sizeof(j->job), "%s", job);
	return j;
}

bool
resting_failed(struct resting *r, const char *job, double now, double worked_seconds)
{
	struct resting_job *j = find(r, job);

	if (!j)
		j = add(r, job, now);
	if (!j)
		return false;
	/* Full jitter, as everywhere: devices that failed together do not come back together. */
	double rest = backoff_limit(j->failures) * prng_double(&r->rng);
	if (++j->failures >= OFTEN) {
		j->until = now;
		double least = 2 * worked_seconds * (double)(1 + count_resting(r, now));
		rest = fmax(rest, fmin(least, RESTING_REST_MAX_S));
	}
	j->until = now + rest;
	return true;
}

void
resting_done(struct resting *r, const char *job)
{
	struct resting_job *j = find(r, job);

	if (j)
		*j = r->jobs[--r->count];
}

double
resting_left(const struct resting *r, const char *job, double now)
{
	for (size_t i = 0; i < r->count; i++)
		if (strcmp(r->jobs[i].job, job) == 0 && r->jobs[i].until > now)
			return r->jobs[i].until - now;
	return 0;
}

double
resting_next(const struct resting *r, double now)
{
	double next = INFINITY;

	for (size_t i = 0; i < r->count; i++)
		if (r->jobs[i].until > now)
			next = fmin(next, r->jobs[i].until - now);
	return next;
}

void
resting_offer(const struct resting *r, struct offer *o, double now)
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
