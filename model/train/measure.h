#ifndef MEASURE_H
#define MEASURE_H
#include "train.h"

/*
 * A coordinator's evaluation of a model on a set of its own: cut into a fixed number of shares and batches of a fixed size, so that the
 * sums keep their order whatever the number of threads.
 */
#define TRAIN_MEASURE_BATCH 32 /* examples */

struct train_measure {
	const struct recipe *recipe;
	const float *params; /* data section of a model, in the network's order */
	const struct dataset *set;
	struct counts
	    *counts; /* to which the recipe's figures are added; NULL: they are not wanted */
	unsigned threads;
	/* Called on these threads before each batch; returning true ends the evaluation. NULL: never. */
	bool (*stop)(void *context, uint64_t done, uint64_t planned);
	void *context;
};

/* If the loss is not finite it is NaN and the accuracy 0 (NaN without labels), and what was counted is of no use. ERR_CLOSED if it was
 * ended, ERR_INVALID for an empty set. */
ERR_MUST_USE enum err train_measure_run(
    const struct train_measure *w, struct train_score *score, struct why *why);

#endif
