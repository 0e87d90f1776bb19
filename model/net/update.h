#ifndef UPDATE_H
#define UPDATE_H
#include "net.h"

/*
 * Steps beyond plain SGD (sgd.h). Each tensor is moved as soon as its gradient is there, which lies in room for the largest of them, or, if
 * layers share it, in its own; a step that needs the whole gradient first, or several, collects it in a vector, and update_move then moves
 * the weights. The bits are the same.
 */
struct adam {
	float beta1, rest1, beta2, rest2; /* rest: one minus beta */
	float step, root, epsilon; /* rate / (1 - beta1^t), sqrt(1 - beta2^t) */
};

struct team;
struct update {
	float *first, *second, *anchor, *total; /* vectors of the net's state; NULL: not needed */
	float *gradient; /* likewise; or, if not `whole`, of single tensors: the caller's to set */
	bool whole;
	bool collected; /* the gradient holds something, */
	bool summed; /* the total does */
	uint64_t steps; /* of Adam, and the betas to that power */
	double power1, power2;
	struct adam adam; /* of the step under way */
	struct team *team; /* threads for it; NULL: one */
};

/* Is a step so described made here? */
bool update_collects(const struct net_update *how);
/* Does it need the whole gradient as a vector? */
bool update_stores(const struct net_update *how);
/* Vectors that it needs beside the weights, velocity included. */
size_t update_vectors(const struct net_update *how);
/* Begins anew with the vectors behind the weights, `stride` floats from one to the next: zeros them, and keeps the weights as the anchor.
 * Returns where they end. */
float *update_begin(
    struct update *u, const struct net_update *how, float *state, size_t stride, size_t count);
/* Is there room for such a step? */
bool update_ready(const struct update *u, const struct net_update *how);

/* A step tensor by tensor, or by parts of one: sgd.h's `step`, whose context is this. update_next comes first. */
struct update_fused {
	struct update *update;
	const struct net_update *how;
	float *params;
};
void update_next(struct update *u, const struct net_update *how);
void update_tensor(const void *fused, size_t first, float *gradient, size_t count);

/* Adds what was collected to the total, and begins to collect anew. */
void update_fold(struct update *u, size_t count);
/* Moves params by the total, or without one by what was collected, and begins to collect anew; one range per tensor that may move. */
struct update_range {
	size_t first, count;
};
void update_move(struct update *u, const struct net_update *how, float *params,
    const struct update_range *ranges, size_t range_count);

#endif
