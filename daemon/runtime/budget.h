#ifndef BUDGET_H
#define BUDGET_H
#include <stdbool.h>
#include <stdint.h>

#include "err.h"

/*
 * The memory that folds and evaluations of all jobs may take together: they take their bytes here before they allocate them. Three
 * sixteenths are kept for small folds, of which at most six run at once, so that large ones do not hold them up. A fold or evaluation
 * that needs more than all large ones may have is let through when no other large one runs, so that a job that was there before the
 * limit still has its rounds. Any thread; never blocks.
 */
struct budget;

ERR_MUST_USE enum err budget_new(struct budget **out);
void budget_free(struct budget *b);
/* The bytes of the whole budget. most: the configured limit; 0: half of the memory that this process may have, as found by budget_new. */
uint64_t budget_all(const struct budget *b, uint64_t most);
/* The most bytes of all large takers together; the most bytes of one small taker. */
uint64_t budget_large(uint64_t all);
uint64_t budget_small(uint64_t all);
/* Takes bytes; all: budget_all. False: there is no room now; a small taker always gets its bytes. b NULL (in tests): always true, and
 * budget_give does nothing. */
bool budget_take(struct budget *b, uint64_t all, uint64_t bytes, bool small);
void budget_give(struct budget *b, uint64_t bytes, bool small);
uint64_t budget_taken(struct budget *b);

#endif
