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
	/* To which the counts of the recipe's figures are added; NULL: no figures are wanted. */
	struct counts *counts;
	unsigned threads;
	/* Called on these threads before each batch; returning true ends the evaluation. NULL: never. */
	bool (*stop)(void *context, uint64_t done, uint64_t planned);
	void *context;
};

/* A loss that is not finite becomes NaN; the accuracy is then 0 (NaN without labels), and *counts undefined. ERR_CLOSED if `stop` ended the
 * evaluation, ERR_INVALID for an empty set. */
ERR_MUST_USE enum err train_measure_run(
    const struct train_measure *w, struct train_score *score, struct why *why);

#endif
