#ifndef EVALSET_H
#define EVALSET_H
#include "measure.h"

struct config;

/* The coordinator's own data sets, for evaluation: loaded once, when first used. Any thread. */
struct evalset;

struct evalset_work {
	const struct recipe *recipe;
	const float *params; /* data section of a model, in the network's order */
	struct counts *counts; /* gets the recipe's figures added; NULL: no figures are wanted */
	/* Threads if the configuration sets no number; fewer are used if evaluation_bytes or the budget has no room. */
	unsigned threads;
	/* Where the memory of each further thread's net is taken; the caller has taken that of the first. NULL: no limit. */
	struct budget *budget;
	/* Called on the evaluation's threads before each batch; returning true ends the evaluation. NULL: never. */
	bool (*stop)(void *context, uint64_t done, uint64_t planned);
	void *context;
};

ERR_MUST_USE enum err evalset_new(struct evalset **out, const struct config *config);
void evalset_free(struct evalset *s);
/* Evaluates a network with these parameters on the recipe's set. A loss that is not finite becomes NaN, with accuracy 0 (NaN
 * without labels) and useless counts. ERR_NOTFOUND if there is no such set, ERR_CLOSED if `stop` ended the evaluation, ERR_IO if the set's
 * file changed meanwhile. */
ERR_MUST_USE enum err evalset_run(
    struct evalset *s, const struct evalset_work *work, struct train_score *score, struct why *why);
/* The bytes of memory of a net that evaluates a model of the recipe; 0 if that cannot be told. */
uint64_t evalset_net_bytes(const struct recipe *recipe);
/* Was the file of a loaded set written to or replaced, or can it not be read? Then *name is that set, and evaluations on it give wrong
 * figures. */
bool evalset_stale(struct evalset *s, const char **name);
/* Can the recipe's set be loaded, does it fit the recipe, and is a batch within the configuration's limits? Loads the set. */
ERR_MUST_USE enum err evalset_check(
    struct evalset *s, const struct recipe *recipe, struct why *why);

#endif
