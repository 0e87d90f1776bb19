#ifndef SCALE_H
#define SCALE_H
#include <stdint.h>

struct scale_spec;

/*
 * The server's rate after the number of reports (Goyal et al. 2017: k times the batch, k times the rate, with a warm-up; the
 * square root for Adam and its like). Right only where each report is the gradient of one batch, so that more reports are a
 * larger batch. The target is m / reports, or its square root. When it changes, the factor goes from the one used last to the new
 * one along a line of `warmup` rounds; the first round begins from 1.
 */
struct scale {
	double used; /* the factor of the last round */
	double from, to; /* the line it is on */
	uint64_t step; /* rounds along it */
};

struct scale scale_start(void);
/* The factor of the next round, which has so many reports; 1 for a job without scaling. */
double scale_next(struct scale *s, const struct scale_spec *spec, uint64_t reports);

#endif
