#ifndef EVALSET_H
#define EVALSET_H
#include "measure.h"

struct config;

/* The coordinator's own data sets, for evaluation: loaded once, when first used. Any thread. */
struct evalset;

struct evalset_work {
	const struct recipe *recipe;
	const float *params; /* data section of a model, in the network's order */
	struct counts
	    *counts; /* to which the recipe's figures are added; NULL: they are not wanted */
	unsigned
	    threads; /* where the configuration says no number; fewer if evaluation_bytes or the budget has no room for as many */
	/* Beside the memory of one net, which the caller has taken, that of as many more as it has room for. NULL: it has. */
	struct budget *budget;
	/* Called on these threads before each batch; returning true ends the evaluation. NULL: never. */
	bool (*stop)(void *context, uint64_t done, uint64_t planned);
	void *context;
};

ERR_MUST_USE enum err evalset_new(struct evalset **out, const struct config *config);
void evalset_free(struct evalset *s);
/* Evaluates a network with these parameters on the recipe's set. If the loss is not finite it is NaN and the accuracy 0 (NaN
 * without labels), and what was counted is of no use. ERR_NOTFOUND if there is no such set, ERR_CLOSED if it was ended, ERR_IO if its file
 * changed meanwhile. */
ERR_MUST_USE enum err evalset_run(
    struct evalset *s, const struct evalset_work *work, struct train_score *score, struct why *why);
/* The memory of a net that measures a model of the recipe; 0 if it cannot be told. */
uint64_t evalset_net_bytes(const struct recipe *recipe);
/* Was the file of a loaded set written to, or another put in its place, or can it not be read? Then *name is that set, and these give
 * wrong figures. */
bool evalset_stale(struct evalset *s, const char **name);
/* Could this set be loaded, does it fit the recipe, and is a batch within the configuration's limits? Loads it. */
ERR_MUST_USE enum err evalset_check(
    struct evalset *s, const struct recipe *recipe, struct why *why);

#endif
