#ifndef HISTOGRAM_H
#define HISTOGRAM_H
#include <stddef.h>
#include <stdint.h>

/*
 * A histogram of durations: counts between fixed bounds, 1, 2 and 5 times each power of ten from a microsecond to
 * 100 seconds. No lock: the owner of a histogram guards it.
 */
#define HISTOGRAM_BOUNDS 25

struct histogram {
	/* [i]: above the bound before and up to bound i; the last: above all bounds. */
	uint64_t buckets[HISTOGRAM_BOUNDS + 1];
	uint64_t count;
	double sum_seconds;
};

void histogram_add(struct histogram *h, double seconds);
/* Seconds of a monotonic clock; only differences have a meaning. */
double histogram_now(void);
/* The upper bound of bucket i, in seconds; infinity for the last. */
double histogram_bound(size_t i);

#endif
