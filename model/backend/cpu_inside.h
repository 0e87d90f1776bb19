#ifndef CPU_INSIDE_H
#define CPU_INSIDE_H
#include "backend.h"

/* The layers of the CPU, each in a file of its own. */

/* y[n, out] = x[n, in] weight[out, in]^T + bias */
extern const struct backend_layer linear_passes;

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
extern const struct backend_layer conv_passes;
/* The same in more groups than one, which conv_passes turns to. */
extern const struct backend_layer grouped_passes;

/* Largest element of each window; padding never wins. The first of equals gets the gradient. */
extern const struct backend_layer pool_max_passes;
/* Mean of each window; padding counts as zeros. */
extern const struct backend_layer pool_average_passes;
/* Mean of each channel. */
extern const struct backend_layer pool_global_passes;

extern const struct backend_layer elementwise_relu_passes;
/* While training each element is zero with probability `rate`, all others are divided by 1 - rate. */
extern const struct backend_layer elementwise_dropout_passes;
/* The same elements as a flat shape. */
extern const struct backend_layer elementwise_flatten_passes;
/* Sum of one or more inputs of one shape. */
extern const struct backend_layer elementwise_add_passes;

extern const struct backend_layer activation_relu6_passes, activation_sigmoid_passes,
    activation_tanh_passes, activation_gelu_passes, activation_silu_passes,
    activation_hardswish_passes;
/* Inputs side by side; the product of two. */
extern const struct backend_layer join_concat_passes, join_multiply_passes;
/* groupnorm; layernorm and rmsnorm. */
extern const struct backend_layer norm_group_passes, norm_row_passes;
extern const struct backend_layer batchnorm_passes;
extern const struct backend_layer embedding_passes, embedding_positions_passes;
/* lstm, gru. */
extern const struct backend_layer recurrent_passes;
extern const struct backend_layer attention_passes;

/* A layer's operands during a pass. */
struct view {
	const float *weight, *bias; /* the first and the second parameter; NULL: none */
	const float *x[RECIPE_INPUTS_MAX];
	float *y, *dy;
	float *dx[RECIPE_INPUTS_MAX]; /* NULL: nobody needs it */
	void *kept; /* n * saved bytes; NULL in a net that only evaluates */
	float *work;
};

struct view view_of(const struct layer *l, const struct backend_pass *p);
/* What one thread of the pass has to itself: work_lane floats, behind all other work. */
float *view_lane(const struct layer *l, const struct backend_pass *p, unsigned lane);
/* Hands over a gradient that is formed, unless the parameter is held. */
void view_give(
    const struct layer *l, const struct backend_pass *p, size_t param, const float *gradient);

#endif
