#ifndef REDUCE_H
#define REDUCE_H
#include "courier.h"
#include "layout.h"
#include "net.h"

/*
 * The sum of the gradients of all runs of a step, over the replicas of one stage, in the order of runs: what net_fold adds up on one
 * device, to the bit. Each replica owns a share of the elements that steps move, about one in `replicas`. After each wave, a run of every
 * replica, the owners add what the others send, in the order of runs; at the end of a step they give their sums to all. Gradients travel
 * in pieces, from the last tensor to the first, while the backward pass goes on.
 *
 * The rank's computing thread makes all calls.
 */
struct reduce;

/* The net is prepared with groups above 1 (net_hand). ERR_NOMEM. */
ERR_MUST_USE enum err reduce_new(struct reduce **out, struct courier *c, struct net *net,
    const struct layout *layout, unsigned replica, unsigned stage);
/* No parcel is under way, or the courier is gone. */
void reduce_free(struct reduce *r);
/* Bytes that reduce_new allocates for a net, which may be a planned one. */
uint64_t reduce_bytes(const struct net *net, unsigned replicas, unsigned replica);

/* A step of so many pieces. `number` tells parcels of steps apart. */
void reduce_begin(struct reduce *r, uint64_t number, uint32_t pieces);
/* Before the last batch of the replica's run in this wave goes back: blocks until the wave before is over. */
ERR_MUST_USE enum err reduce_await(struct reduce *r);
/* net_gradients.complete, of that batch. */
void reduce_complete(void *reduce, size_t first, const float *gradient, size_t count);
/* After it: the run is over. */
void reduce_hand(struct reduce *r);
/* Takes part in the waves in which the replica has no run, blocks until the step's sums are everywhere, and makes them the gradient of the
 * net. */
ERR_MUST_USE enum err reduce_end(struct reduce *r);

#endif
