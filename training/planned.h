#ifndef PLANNED_H
#define PLANNED_H
#include "net.h"
#include "task_kind.h"

struct dataset;

/* The network that a task is worked on with, before the task is there: its size, and whether the examples suit it. Pure but for the
 * allocations of a network of figures only. */

/* Of the examples the count and what an example is are looked at; validation: on how many the base is measured before the training. */
struct net_part planned_training(
    const struct recipe *recipe, const struct dataset *train, uint64_t validation);
struct net_part planned_evaluating(const struct recipe *recipe, const struct dataset *set);
/* At most so many threads; 0: as many as the machine has processors. */
unsigned planned_threads(uint64_t most);

struct planned_task {
	const struct recipe *recipe;
	enum task_kind kind;
	const struct dataset *train;
	uint64_t validation; /* examples */
	unsigned threads;
};
/* The task's network, of figures only, and in *data (may be NULL) the bytes of its batches. The caller frees the network with net_free.
 * ERR_INVALID, ERR_LIMIT, ERR_NOMEM. */
ERR_MUST_USE enum err planned_net(
    struct net **out, const struct planned_task *plan, uint64_t *data, struct why *why);
/* Can the recipe's network learn from the set? False says what differs. */
bool planned_suits(const struct recipe *recipe, const struct dataset *set, struct why *why);

#endif
