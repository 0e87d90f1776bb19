#ifndef LOSS_H
#define LOSS_H
#include "net.h"

/*
 * Losses over a batch of n rows of `width` outputs. `gradient`, if not NULL, becomes the gradient of the batch's mean
 * loss; it may be `outputs`. ERR_NUMERIC if the loss is not finite; the gradient is meaningless then.
 */

/* The loss of a net_spec. */
struct loss_how {
	enum loss_type type;
	bool target_input;
	bool ignores;
	int32_t ignored;
	float smoothing;
	float *class_weights; /* NULL: all 1 */
	size_t class_weight_count;
	/* With unequal labels: the weight of the labels of all batches of the step, over which the mean is taken. 0: over this batch. */
	double whole;
	struct team *team; /* rows are divided among these threads */
};

/* Does a row of that label count? */
bool loss_counts(const struct loss_how *how, int32_t label);
/* The weight of a row of that label in the mean: 0 if it does not count. */
double loss_weight(const struct loss_how *how, int32_t label);
/* Softmax and cross-entropy, as PyTorch's with smoothing, weights and an ignored label; every label that counts is in [0, width). */
ERR_MUST_USE enum err loss_cross_entropy(const struct loss_how *how, const float *outputs,
    const int32_t *labels, size_t n, size_t width, float *gradient, struct net_result *result);
/* Mean over the elements of the squared difference. */
ERR_MUST_USE enum err loss_mse(const float *outputs, const float *targets, uint32_t n, size_t width,
    float *gradient, struct net_result *result);
/* Mean over the elements of the binary cross-entropy, sigmoid inside. */
ERR_MUST_USE enum err loss_bce(const float *outputs, const float *targets, uint32_t n, size_t width,
    float *gradient, struct net_result *result);

/* The class that a row predicts: its largest output, the first of equal ones. */
size_t loss_argmax(const float *row, size_t width);

#endif
