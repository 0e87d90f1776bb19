#ifndef BUDGET_H
#define BUDGET_H
#include <stdbool.h>
#include <stdint.h>

#include "err.h"

/*
 * The memory that job documents may make the coordinator take, over all its threads: folds and evaluations take their bytes here before
 * they allocate them. Three sixteenths are kept for small folds, of which there are six at once at most, so that whoever needs much does
 * not hold up whoever needs little. What needs more is let through when no other large one is at work: a job that was there before the limit has its rounds. Any thread; never blocks.
 */
struct budget;

ERR_MUST_USE enum err budget_new(struct budget **out);
void budget_free(struct budget *b);
/* most: of the configuration; 0: half of what this process may have, as it was found when the budget was made. */
uint64_t budget_all(const struct budget *b, uint64_t most);
/* The most that all large takers may have; the most of a small one. */
uint64_t budget_large(uint64_t all);
uint64_t budget_small(uint64_t all);
/* False: there is no room now. Who is small always has it. b NULL (a test's services): always true, and in budget_give nothing. */
bool budget_take(struct budget *b, uint64_t all, uint64_t bytes, bool small);
void budget_give(struct budget *b, uint64_t bytes, bool small);
uint64_t budget_taken(struct budget *b);

#endif
