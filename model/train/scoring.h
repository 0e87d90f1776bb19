#ifndef SCORING_H
#define SCORING_H
#include <stddef.h>
#include <stdint.h>

struct counts;

/*
 * Counts a batch for the figures of a job (wire/figures) by a network's outputs. Single IEEE operations only, so that two machines
 * count the same.
 *
 * A class is predicted if its output is the largest, the first of equals; an example is right by top k if fewer than k outputs are
 * larger than its class's, or equal and before it. The score of class 1 of two is z / (1 + |z|), z the difference of the outputs: the score
 * rises with the probability and, unlike the probability, still differs between very confident outputs; the bins divide -1 to 1 evenly.
 */

/* outputs: n rows of `width`; labels in [0, width). */
void scoring_classes(
    struct counts *to, const float *outputs, const int32_t *labels, size_t n, size_t width);
/* targets: of the same shape as outputs. */
void scoring_values(
    struct counts *to, const float *outputs, const float *targets, uint32_t n, size_t width);

struct net;
struct net_batch;
/* A batch of the net, or of its part with the loss: what its labels, targets or, without these, inputs say of the outputs. Labels that do not
 * count are left out. */
void scoring_batch(
    struct counts *to, const struct net *net, const float *outputs, const struct net_batch *batch);

#endif
