#ifndef CONV_H
#define CONV_H
#include "layer.h"

/*
 * y[n, o] = bias[o] + sum over c of x[n, c] correlated with weight[o, c, kh, kw], zeros around the input.
 *
 * Forward, one example at a time is copied into planes with their zeros around them, and unfolded, some channels and rows
 * of output at a time, into a slab [channels * kh * kw][rows * output width] that stays in the cache; a product with
 * the weights follows.
 *
 * Backward, most of dy is zero: behind a ReLU about half, behind a 2 x 2 maximum three quarters and more. Only
 * the others are worked on. Pixels hold their channels side by side there, so that what lies under one row of the
 * kernel is one run of memory: x's run times dy is added to the gradient of the weights, the weights' run times dy
 * to the gradient of x.
 *
 * Workspace does not grow with the batch.
 */
extern const struct layer_ops conv_ops;

#endif
