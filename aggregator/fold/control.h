#ifndef CONTROL_H
#define CONTROL_H
#include "rule.h"

/*
 * The coordinator's control variate (SCAFFOLD, Karimireddy et al. 2020): c <- c + (1/N) sum of the changes of the devices' own
 * variates, where N counts all devices of the job, not those of the round. While every change is counted once, c is the mean
 * of the devices' variates, all of which begin at zero. count <= RULE_TILE.
 */

/* changes: read_tile gives a change's elements; weights are not looked at. Their sum in f64, in the order given. ERR_INVALID if count
 * is larger, or what read_tile returned. */
ERR_MUST_USE enum err control_sum(
    const struct rule_input *changes, uint64_t first, size_t count, double *sum);
/* The sum is divided once, added to c in f64 and rounded once to f32. ERR_NUMERIC if a result is not finite: c is then of no use. */
ERR_MUST_USE enum err control_step(float *c, const double *sum, size_t count, uint32_t devices);

#endif
