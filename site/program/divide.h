#ifndef DIVIDE_H
#define DIVIDE_H
#include <stdio.h>

#include "leader.h"
#include "measures.h"
#include "partition.h"

struct pieces;
struct site;

/* How a task is divided, and what that was made of. */
#define LOOKS 64 /* batches that an evaluation is planned for */
struct divided {
	unsigned ranks; /* of the world */
	struct measures measured;
	struct partition best;
	uint64_t bytes[LINK_RANKS_MAX]; /* of each rank */
};
/* Measures, plans, and sets the task's layout. divide_deinit is due also after a failure. ERR_LIMIT, ERR_UNSUPPORTED: plan_site. */
ERR_MUST_USE enum err divide_task(const struct site *s, struct world *world,
    struct leader_task *task, const struct pieces *pieces, struct divided *out, struct why *why);
/* As a table for people. */
void divide_print(FILE *to, const struct divided *d, const struct leader_task *task);
void divide_deinit(struct divided *d);

#endif
