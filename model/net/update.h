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
	float
	    *apart; /* gradients that layers sharing a weight add up apart; NULL: there are none */
	bool whole;
	bool summed; /* `total` holds a sum */
	bool pulled; /* the step's gradient has the pull of prox */
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

/* Adds the collected gradient to the total. */
void update_fold(struct update *u, size_t count);
/* to += from, with the threads of the step. */
void update_add(const struct update *u, float *to, const float *from, size_t count);

/* The elements of tensors that may move, a range each. */
struct update_range {
	size_t first, count;
};
struct update_ranges {
	const struct update_range *items;
	size_t count;
};
/* With clip, before update_move: adds the squares of these tensors' elements of the step's gradient to the lanes, tensor by tensor. */
void update_norm(struct update *u, const struct net_update *how, float *params,
    const struct update_ranges *ranges, double lanes[NET_NORM_LANES]);
/* What a step multiplies its gradient with. */
float update_factor(const struct net_update *how, const double lanes[NET_NORM_LANES]);
/* Moves params by the step's gradient, which is the total, or in steps without groups the collected gradient, times `factor`. */
void update_move(struct update *u, const struct net_update *how, float *params,
    const struct update_ranges *ranges, float factor);

#endif
