#ifndef UPDATE_H
#define UPDATE_H
#include "net.h"

/*
 * Steps beyond plain SGD (sgd.h). Each tensor is moved as soon as its gradient is complete; the gradient lies in room for the largest
 * tensor, or, if layers share the tensor, in room of its own. A step that first needs the whole gradient, or several gradients, collects
 * them in a vector, and update_move then moves the weights. Both ways give the same bits.
 */
struct adam {
	float beta1, rest1, beta2, rest2; /* rest: one minus beta */
	float step, root, epsilon; /* rate / (1 - beta1^t), sqrt(1 - beta2^t) */
};

struct team;
struct update {
	float *first, *second, *anchor, *total; /* vectors of the net's state; NULL: not needed */
	/* whole: a vector of the state; else room for single tensors' gradients, set by the caller. */
	float *gradient;
	bool whole;
	bool collected; /* `gradient` holds a sum */
	bool summed; /* `total` holds a sum */
	uint64_t steps; /* of Adam so far */
	double power1, power2; /* beta1 and beta2 to the power `steps` */
	struct adam adam; /* of the current step */
	struct team *team; /* the threads of a step; NULL: one */
};

/* Does this file make the step? False: sgd.h alone makes it. */
bool update_collects(const struct net_update *how);
/* Does the step need the whole gradient as a vector? */
bool update_stores(const struct net_update *how);
/* How many vectors of the state the step needs beside the weights, velocity included. */
size_t update_vectors(const struct net_update *how);
/* Begins anew with the vectors behind the weights, which lie `stride` floats apart: zeros the vectors, and copies the weights to the
 * anchor. Returns where the vectors end. */
float *update_begin(
    struct update *u, const struct net_update *how, float *state, size_t stride, size_t count);
/* Has *u the vectors that such a step needs? */
bool update_ready(const struct update *u, const struct net_update *how);

/* A step tensor by tensor, or by parts of a tensor: update_tensor is sgd.step, with a struct update_fused as its context. update_next is
 * called before each step. */
struct update_fused {
	struct update *update;
	const struct net_update *how;
	float *params;
};
void update_next(struct update *u, const struct net_update *how);
void update_tensor(const void *fused, size_t first, float *gradient, size_t count);

/* Adds the collected gradient to the total, and begins to collect anew. */
void update_fold(struct update *u, size_t count);
/* Moves params by the total, or in steps without groups by the collected gradient, and begins to collect anew. ranges: one per tensor that
 * may move. */
struct update_range {
	size_t first, count;
};
void update_move(struct update *u, const struct net_update *how, float *params,
    const struct update_range *ranges, size_t range_count);

#endif
