#ifndef RANK_H
#define RANK_H
#include "courier.h"
#include "layout.h"
#include "net.h"
#include "reduce.h"
#include "stage.h"

struct counts;
struct team;

/*
 * One rank at work: its stages, its part of the network, its part of each step. The leader (leader.h) drives rank 0, the member loop
 * (member_loop.h) the others; both make the same calls.
 */

/* What a world works on, the same at every rank. */
struct rank_task {
	const struct net_part *whole; /* the network; range and contexts are not looked at */
	const struct layout *layout;
	unsigned threads; /* of a rank */
	const struct net_update *how; /* of a training; NULL: an evaluation */
};

/* What is a rank's. */
struct rank_parts {
	struct net_part part;
	struct stage_place places[NET_RANGES];
	size_t count;
	unsigned replicas;
	bool leads; /* it is rank 0 */
};
void rank_parts(struct rank_parts *out, const struct rank_task *task, unsigned rank);
/* Bytes that a rank takes for a training by `how`, or with NULL an evaluation: as rank_new and rank_begin allocate, and the leader's copies of
 * what it feeds. Of the stages' places only the sizes are looked at. ERR_INVALID, ERR_LIMIT, ERR_NOMEM, ERR_UNSUPPORTED. */
ERR_MUST_USE enum err rank_bytes(uint64_t *out, const struct rank_parts *parts, unsigned threads,
    const struct net_update *how, struct why *why);

struct rank;
ERR_MUST_USE enum err rank_new(
    struct rank **out, struct courier *c, const struct rank_task *task, struct why *why);
void rank_free(struct rank *r);
struct net *rank_net(struct rank *r);
/* As net_prepare. */
ERR_MUST_USE enum err rank_begin(struct rank *r, const struct net_update *how, struct why *why);

/* A step, or an evaluation, as the world makes it. */
struct rank_step {
	uint64_t number; /* of all steps and evaluations of the world, from 1 */
	uint64_t drawn; /* steps made before */
	uint64_t seed;
	uint64_t pieces; /* of the step; batches of the evaluation */
	bool looks;
	bool alone; /* an evaluation by the first replica */
	struct counts *counts; /* of an evaluation, where the last stage adds its own; NULL: none */
};
ERR_MUST_USE enum err rank_step(struct rank *r, const struct rank_step *step);
/* Which replica has a batch of an evaluation, and as which of its own; and back. */
struct layout_place rank_place(const struct layout *l, bool alone, uint64_t batch);
uint64_t rank_looked(const struct layout *l, bool alone, unsigned replica, uint32_t own);
/* Own batches of the step. */
uint32_t rank_batches(const struct rank *r);
/* Rank 0: gives its pipeline the next batch, as far as its stages are there. */
ERR_MUST_USE enum err rank_feed(
    struct rank *r, uint32_t batch, const struct net_batch *from, float share);
/* Makes the passes that need no more than the first `fed` batches of a stage that is fed by this process; UINT32_MAX: all. Blocks. Errors
 * are the courier's. */
ERR_MUST_USE enum err rank_work(struct rank *r, uint32_t fed);
/* After the last pass: sums of replicas, the norm, and the step. */
ERR_MUST_USE enum err rank_move(struct rank *r);
/* Computes nothing any more. */
void rank_fail(struct rank *r);
/* Why the rank computes nothing any more; ERR_STATE: a rank before has failed. */
enum err rank_failure(const struct rank *r);
/* Of each own batch, if the rank has the last stage; else NULL. */
const struct net_result *rank_results(const struct rank *r);

/* Elements of one stage's parameters, in their order. */
float *rank_parameters(struct rank *r, unsigned stage);

#endif
