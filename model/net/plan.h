#ifndef PLAN_H
#define PLAN_H
#include "layer.h"

/*
 * Where everything of a net lies: two blocks (backend.h), and offsets into them. Pure: from shapes and needs to numbers.
 *
 * Every part begins on a cache line, and its bytes are rounded up to whole ones, r():
 *   state     r(4 x parameters) per vector
 *   shared    the gradients of outputs, r(4 x batch x outputs) each, and outputs that the way back does not read or that are worked out
 *             again for it, each only as long as somebody needs it (arena.h); r(4 x floats) of workspace
 *   context   outputs that the way back reads, but for those that are written over their input, and r(batch x saved) where there is one
 *
 * With blocks that are worked out again (blocks.h) what is inside them is shared, what layers keep for the way back included. Where the net
 * ends with the loss and there is one context, the gradient of the last output lies where that was.
 */
struct plan_want {
	uint32_t max_batch, contexts, threads; /* each at least 1 */
	bool train; /* false leaves out what only the backward pass needs */
	/* The backward pass ends at the net's input, not at the first parameter. */
	bool input_gradient;
	bool ends; /* with the loss */
	bool
	    recompute; /* what is inside blocks is worked out again: those with which the net takes least */
};

struct plan {
	size_t work_at; /* bytes into the shared part, behind all else */
	size_t shared, context; /* bytes */
	size_t passes; /* of the second block: shared, then every context */
};

/* Sets what a layer says is set by plan.c. ERR_INVALID for a layer whose output nobody uses, ERR_LIMIT; with the layer's name in why. */
ERR_MUST_USE enum err plan_passes(struct plan *p, struct layer *layers, size_t count,
    const struct plan_want *want, struct why *why);
/* Floats of workspace that a layer wants for its passes; false if they are too many to count. */
bool plan_work(const struct layer *l, const struct plan_want *want, size_t *floats);
/* Bytes of the first block with so many vectors; false if they are too many to count. */
bool plan_state(uint64_t elements, size_t vectors, size_t *bytes);

#endif
