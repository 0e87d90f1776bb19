#ifndef STALE_H
#define STALE_H
#include "job.h"

/*
 * What a delta counts that was trained on an older base: s(t), t being the rounds between its task's and the one it is folded in.
 * FedBuff's (Nguyen et al. 2022) is 1 / sqrt(1 + t), which is 1 for a fresh one. Never above 1, so that no delta counts more than it
 * would have in its own round. Only sums, quotients and square roots: the same bits everywhere.
 */
double stale_weight(const struct staleness_spec *spec, uint64_t t);
/* The same as a factor of the delta, so that the divisor stays as it is, or of the delta's weight: *scale, 1 in the second case, and
 * *weight, which is multiplied. */
void stale_apply(const struct staleness_spec *spec, uint64_t t, double *weight, double *scale);

#endif
