#ifndef ELEMENTWISE_H
#define ELEMENTWISE_H
#include "layer.h"

/* Layers that work element by element. */
extern const struct layer_ops elementwise_relu_ops;
/* While training each element is zero with probability `rate`, all others are divided by 1 - rate. */
extern const struct layer_ops elementwise_dropout_ops;
/* The same elements as a flat shape. */
extern const struct layer_ops elementwise_flatten_ops;
/* Sum of one or more inputs of one shape. */
extern const struct layer_ops elementwise_add_ops;

#endif
