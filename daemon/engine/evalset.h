#ifndef EVALSET_H
#define EVALSET_H
#include "config.h"
#include "dataset.h"
#include "train.h"

/* The coordinator's own data sets, for evaluation: loaded once, when first used. One user at a time. */
struct evalset;

ERR_MUST_USE enum err evalset_new(struct evalset **out, const struct config *config);
void evalset_free(struct evalset *s);
/* Evaluates a network with these parameters (data section of a model, in the network's order) on the named set, on
 * `threads` threads. If the loss is not finite it is NaN and the accuracy 0 (NaN without labels). ERR_NOTFOUND if there is no such
 * set. */
ERR_MUST_USE enum err evalset_run(struct evalset *s, const struct recipe *recipe,
    const float *params, unsigned threads, struct train_score *score, struct why *why);
/* Could this set be loaded and does it fit the recipe? Loads it. */
ERR_MUST_USE enum err evalset_check(
    struct evalset *s, const struct recipe *recipe, struct why *why);

#endif
