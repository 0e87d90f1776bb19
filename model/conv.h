#ifndef CONV_H
#define CONV_H
#include "layer.h"

/*
 * y[n, o] = bias[o] + sum over c of x[n, c] correlated with weight[o, c, kh, kw], zeros around the input.
 *
 * One example at a time is copied into planes with their zeros around them, and unfolded, some channels and rows of
 * output at a time, into a slab [channels * kh * kw][rows * output width] that stays in the cache; a product with
 * the weights follows. Workspace therefore does not grow with the batch.
 */
extern const struct layer_ops conv_ops;

#endif
