#ifndef CPU_DENSE_H
#define CPU_DENSE_H

/* Layers that work on vectors, tables and single elements. */

/* y[n, out] = x[n, in] weight[out, in]^T + bias */
extern const struct backend_layer linear_passes;

extern const struct backend_layer elementwise_relu_passes;
/* While training each element, of dropout2d each channel, is zero with probability `rate`, all others are divided by 1 - rate. */
extern const struct backend_layer elementwise_dropout_passes;
/* The input's elements in a flat shape. */
extern const struct backend_layer elementwise_flatten_passes;
/* Sum of one or more inputs of one shape. */
extern const struct backend_layer elementwise_add_passes;

extern const struct backend_layer activation_relu6_passes, activation_sigmoid_passes,
    activation_tanh_passes, activation_gelu_passes, activation_silu_passes,
    activation_hardswish_passes;
/* y = x for x >= 0; below 0: leaky_relu x times the slope, elu alpha (e^x - 1). */
extern const struct backend_layer slopes_leaky_relu_passes, slopes_elu_passes;
/* y = x times a number. */
extern const struct backend_layer slopes_scale_passes;
/* concat: the inputs side by side; multiply: the product of two inputs. */
extern const struct backend_layer join_concat_passes, join_multiply_passes;
extern const struct backend_layer embedding_passes, embedding_positions_passes;

#endif
