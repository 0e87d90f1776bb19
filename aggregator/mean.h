#ifndef MEAN_H
#define MEAN_H
#include "rule.h"

/* The rule "mean" of rule.h: sum of weight times element over the deltas in order, in f64, divided once by the
 * sum of the weights (added in the same order), rounded once to f32.
 *
 * Because the division comes last, one delta of any weight from 2^-64 to 2^64 gives back its own bits, and the
 * products are exact while weights are whole numbers up to 2^29. */
enum err mean_fold(const struct rule_input *in, uint64_t first, size_t count, float *update);

#endif
