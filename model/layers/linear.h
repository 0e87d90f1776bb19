#ifndef LINEAR_H
#define LINEAR_H
#include "layer.h"

/* y[n, out] = x[n, in] weight[out, in]^T + bias. The input must be flat. */
extern const struct layer_ops linear_ops;

#endif
