#ifndef CONTROL_H
#define CONTROL_H
#include "rule.h"

/*
 * The coordinator's control variate (SCAFFOLD, Karimireddy et al. 2020): c <- c + (1/N) sum of the changes of the devices' own
 * variates, where N counts all devices of the job, not those of the round. While every change is counted once, c is the mean
 * of the devices' variates, all of which begin at zero.
 *
 * changes: read_tile gives a change's elements; weights are not looked at. The sum is in f64 in the order given, divided once and
 * added to c in f64, then rounded once to f32. ERR_NUMERIC if a result is not finite (c is then of no use), or what read_tile
 * returned. c: elements [first, first + count), count <= RULE_TILE.
 */
ERR_MUST_USE enum err control_fold(
    const struct rule_input *changes, uint32_t devices, uint64_t first, size_t count, float *c);

#endif
