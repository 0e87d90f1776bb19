#ifndef CPU_SPATIAL_H
#define CPU_SPATIAL_H

/* Layers over channels of height and width. */

/*
 * y[n, o] = bias[o] + sum over c of x[n, c] correlated with weight[o, c, kh, kw], zeros around the input.
 *
 * Forward, one example at a time is copied into planes with their zeros around them, and unfolded, some channels and rows
 * of output at a time, into a slab [channels * kh * kw][rows * output width] that stays in the cache; a product with
 * the weights follows. Long rows of stride 1 are multiplied as they lie in the planes instead, unless the network is mixed, and a
 * kernel of one element takes x as it is: the same sums.
 *
 * Backward, where much of dy is zero (behind a ReLU about half, behind a 2 x 2 maximum three quarters and more), only
 * the other elements are processed; where it is not, as behind norms, conv_dense.h makes products of all, with the same bits.
 * Pixels hold their channels side by side there, so that what lies under one row of the kernel is one run of memory:
 * x's run times dy is added to the gradient of the weights, the weights' run times dy to the gradient of x.
 *
 * Workspace does not grow with the batch.
 */
extern const struct backend_layer conv_passes;
/* Convolutions in more than one group; conv_passes calls these passes. */
extern const struct backend_layer grouped_passes;

/* Largest element of each window; padding never wins. The first of equals gets the gradient. */
extern const struct backend_layer pool_max_passes;
/* Mean of each window; padding counts as zeros. */
extern const struct backend_layer pool_average_passes;
/* Mean of each channel. */
extern const struct backend_layer pool_global_passes;

#endif
