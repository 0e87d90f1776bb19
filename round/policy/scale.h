#ifndef SCALE_H
#define SCALE_H
#include <stdint.h>

struct scale_spec;

/*
 * Scales the server's rate by the number m of a round's reports (Goyal et al. 2017: k times the batch, k times the rate, with a warm-up;
 * the square root for Adam and similar optimizers). Right only where each report is the gradient of one batch, so that more reports are a
 * larger batch. The target is m / scale_spec.reports, or its square root. When the target changes, the factor moves from its last value to
 * the target along a line of `warmup` rounds; the first round starts from 1.
 */
struct scale {
	double used; /* the factor of the last round */
	double from, to; /* the line that the factor moves along */
	uint64_t step; /* rounds along that line so far */
};

struct scale scale_start(void);
/* The factor of the next round, which has so many reports; 1 for a job without scaling. */
double scale_next(struct scale *s, const struct scale_spec *spec, uint64_t reports);

#endif
