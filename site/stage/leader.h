#ifndef LEADER_H
#define LEADER_H
#include "layout.h"
#include "net.h"
#include "stepper.h"
#include "world.h"

/*
 * Rank 0: makes a training's steps (stepper.h) with all ranks of a world, as one device would, to the bit. It feeds each pipeline's first
 * stage with examples and its last stage with what they are compared with, as many batches ahead as the first stage has contexts.
 */
struct leader;
struct recipe;
struct leader_task {
	const struct recipe *recipe; /* lives as long as the leader */
	struct net_part whole; /* the network: as planned_training and planned_evaluating say */
	struct net_update how; /* of a training: as train_update says */
	uint64_t seed; /* of a training */
	struct layout layout; /* of the first ranks of the world */
	uint64_t max_bytes; /* that the net of one rank may take; 0: no limit */
	uint32_t threads; /* of a rank */
};
/* Has every rank make its part. ERR_LIMIT, ERR_NOMEM: a rank has too little memory; others as net_new_part, or the courier's. */
ERR_MUST_USE enum err leader_new(
    struct leader **out, struct world *world, const struct leader_task *task, struct why *why);
struct stepper leader_stepper(struct leader *l);
/* Ends what is under way; the other ranks then wait for another task. */
void leader_free(struct leader *l);

#endif
