#ifndef CONTROL_H
#define CONTROL_H
#include "rule.h"

/*
 * The coordinator's control variate (SCAFFOLD, Karimireddy et al. 2020): c <- c + (1/N) sum of the changes of the devices' own
 * variates, where N counts all devices of the job, not those of the round. While every change is counted once, c is the mean
 * of the devices' variates, all of which begin at zero. count <= RULE_TILE.
 */

/* Sums elements [first, first + count) of the devices' changes in f64, in the order given. changes->read_tile reads a change; weights are
 * not used. ERR_INVALID if count > RULE_TILE, or what read_tile returned. */
ERR_MUST_USE enum err control_sum(
    const struct rule_input *changes, uint64_t first, size_t count, double *sum);
/* Divides the sum once by `devices` (N), adds it to c in f64 and rounds once to f32. ERR_NUMERIC if a result is not finite: c is then
 * undefined. */
ERR_MUST_USE enum err control_step(float *c, const double *sum, size_t count, uint32_t devices);

#endif
