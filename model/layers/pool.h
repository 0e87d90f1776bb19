#ifndef POOL_H
#define POOL_H
#include "layer.h"

/* Largest element of each window; padding never wins. The first of equals gets the gradient. */
extern const struct layer_ops pool_max_ops;
/* Mean of each window; padding counts as zeros. */
extern const struct layer_ops pool_average_ops;

#endif
