#ifndef LAYOUT_H
#define LAYOUT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "link.h"
#include "pipeline.h"

/*
 * How a world divides a training: `replicas` pipelines of `pipeline` ranks each. Rank replica x pipeline + s has stage s; in a ring the
 * last stage is on the rank of stage 0. Replica g mod `replicas` has run g of a step.
 */
struct layout {
	uint32_t pipeline, replicas;
	bool ring;
	/* Stage s has layers [cut[s], cut[s + 1]). */
	uint32_t cut[LINK_RANKS_MAX + 2];
	uint32_t pieces, run; /* of a whole step, of a whole run */
};

static inline unsigned
layout_ranks(const struct layout *l)
{
	return l->pipeline * l->replicas;
}

/* The last stage. */
static inline unsigned
layout_last(const struct layout *l)
{
	return l->ring ? l->pipeline : l->pipeline - 1;
}

static inline unsigned
layout_rank(const struct layout *l, unsigned replica, unsigned stage)
{
	return replica * l->pipeline + stage % l->pipeline;
}

/* Batches that a replica works on in a step of so many pieces. */
uint32_t layout_batches(const struct layout *l, unsigned replica, uint32_t pieces);
/* The number, in the step, of a replica's batch. */
uint32_t layout_piece(const struct layout *l, unsigned replica, uint32_t batch);
/* The replica that has a piece, and which of its batches that is. */
struct layout_place {
	unsigned replica;
	uint32_t batch;
};
struct layout_place layout_place(const struct layout *l, uint32_t piece);
/* Batches after which a replica's pipeline flushes: in a ring a run's, since both of rank 0's stages add to one gradient; else a step's. */
uint32_t layout_flush(const struct layout *l, uint32_t batches);
/* Batches that a stage may have between forward and back. */
uint32_t layout_contexts(const struct layout *l, unsigned stage);

#endif
