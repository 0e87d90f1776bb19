#ifndef HISTOGRAM_H
#define HISTOGRAM_H
#include <stddef.h>
#include <stdint.h>

/* A histogram: counts between the bounds of its scale. No lock: the owner of a histogram guards it. */
#define HISTOGRAM_BOUNDS 25

enum histogram_scale {
	HISTOGRAM_FINE, /* seconds: 1, 2 and 5 times each power of ten from a microsecond to 100 seconds */
	HISTOGRAM_LONG, /* seconds: a tenth, and 17 times its double, to 3.6 hours */
	HISTOGRAM_ROUNDS, /* whole numbers: 0, 1, and its doubles to 512 */
	HISTOGRAM_SCALES,
};

/* Zero at first, but for the scale. */
struct histogram {
	enum histogram_scale scale;
	/* [i]: above the bound before and up to bound i; behind the scale's last bound: above all. */
	uint64_t buckets[HISTOGRAM_BOUNDS + 1];
	uint64_t count;
	double sum;
};

void histogram_add(struct histogram *h, double value);
/* Seconds of a monotonic clock; only differences have a meaning. */
double histogram_now(void);
/* How many bounds the scale has. */
size_t histogram_bounds(enum histogram_scale scale);
/* The upper bound of bucket i; infinity for the last. */
double histogram_bound(enum histogram_scale scale, size_t i);

#endif
