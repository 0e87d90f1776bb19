#ifndef LOSS_H
#define LOSS_H
#include "net.h"

/*
 * Losses over a batch of n rows of `width` outputs. `gradient`, if not NULL, becomes the gradient of the batch's mean
 * loss. ERR_NUMERIC if the loss is not finite; the gradient is meaningless then.
 */

/* Softmax and cross-entropy; every label is in [0, width). */
ERR_MUST_USE enum err loss_cross_entropy(const float *outputs, const int32_t *labels, uint32_t n,
    size_t width, float *gradient, struct net_result *result);
/* Mean over the elements of the squared difference. */
ERR_MUST_USE enum err loss_mse(const float *outputs, const float *targets, uint32_t n, size_t width,
    float *gradient, struct net_result *result);

/* The class that a row decides for: its largest output, the first of equals. */
size_t loss_argmax(const float *row, size_t width);

#endif
