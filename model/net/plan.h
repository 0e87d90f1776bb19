#ifndef PLAN_H
#define PLAN_H
#include "layer.h"

/*
 * Where the arrays of a net lie: two blocks of memory (backend.h), and offsets into the blocks. Pure: from shapes and needs to numbers.
 *
 * Every array begins on a cache line, and its bytes are rounded up to whole lines, r():
 *   state     r(4 x parameters) per vector
 *   shared    the gradients of outputs, r(4 x batch x outputs) each, and outputs that the backward pass does not read or computes again,
 *             each only while it is needed (arena.h); r(4 x floats) of workspace
 *   context   outputs that the backward pass reads, except those written over their input, and r(batch x saved) if there is a backward pass
 *
 * Everything inside blocks that are computed again (blocks.h) is shared, also what layers keep for the backward pass. If the net has the
 * loss and one context, the gradient of the last output is written over that output.
 */
struct plan_want {
	uint32_t max_batch, contexts, threads; /* each at least 1 */
	bool train; /* false leaves out what only the backward pass needs */
	/* The backward pass ends at the net's input, not at the first parameter. */
	bool input_gradient;
	bool ends; /* the net has the last layer, and so the loss */
	/* Outputs inside blocks are computed again; the blocks are those with which the net takes least memory. */
	bool recompute;
};

struct plan {
	/* Where the workspace begins: bytes into the shared part, behind all else there. */
	size_t work_at;
	size_t shared, context; /* bytes */
	size_t passes; /* bytes of the second block: the shared part, then every context */
};

/* Sets the members of each layer that layer.h marks as set by plan.c. ERR_INVALID for a layer whose output nobody uses, ERR_LIMIT; with the
 * layer's name in why. */
ERR_MUST_USE enum err plan_passes(struct plan *p, struct layer *layers, size_t count,
    const struct plan_want *want, struct why *why);
/* Floats of workspace that a layer needs for its passes; false if the number overflows. */
bool plan_work(const struct layer *l, const struct plan_want *want, size_t *floats);
/* Bytes of the block `state` with so many vectors; false if the number overflows. */
bool plan_state(uint64_t elements, size_t vectors, size_t *bytes);

#endif
