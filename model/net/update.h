#ifndef UPDATE_H
#define UPDATE_H
#include "net.h"

/*
 * Steps that need the whole gradient before a weight moves. Gradients of one or more passes are collected in a vector of
 * their own; update_move then moves the weights as net_update says. Plain SGD does without (sgd.h).
 */
struct update {
	float *gradient, *first, *second,
	    *anchor; /* vectors of the net's state; NULL: not needed */
	bool collected; /* the gradient holds something */
	uint64_t steps; /* of Adam, and the betas to that power */
	double power1, power2;
};

/* Does a step so described need the gradient as a vector? */
bool update_collects(const struct net_update *how);
/* Is it kept as one, for that or to collect several passes? */
bool update_stores(const struct net_update *how);
/* Vectors that it needs beside the weights, velocity included. */
size_t update_vectors(const struct net_update *how);
/* Begins anew with the vectors behind the weights, `stride` floats from one to the next: zeros all, and keeps the weights as the
 * anchor. */
void update_begin(
    struct update *u, const struct net_update *how, float *state, size_t stride, size_t count);
/* Has update_begin made room for such a step? */
bool update_ready(const struct update *u, const struct net_update *how);
/* Moves params by what was collected and begins to collect anew; one range per tensor that may move. */
struct update_range {
	size_t first, count;
};
void update_move(struct update *u, const struct net_update *how, float *params,
    const struct update_range *ranges, size_t range_count);

#endif
