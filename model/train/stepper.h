#ifndef STEPPER_H
#define STEPPER_H
#include "net.h"

struct counts;

/*
 * A stepper makes a training's steps, and evaluates: a table of calls. The network in this process's memory is one stepper (stepper_net);
 * several machines, or another processor, can be another. The loop (pieces.h, train.h) decides which examples a step takes, in which order,
 * and which step is the last.
 *
 * One thread makes the calls, one after the other; each may block. After an error, or an interrupted evaluation, no more calls are
 * made.
 */

/* A piece of a step: all of the step's examples, or some of them. */
struct stepper_piece {
	/* What the batch points to is the caller's again when the call returns. */
	struct net_batch batch;
	uint64_t step; /* steps made before */
	uint32_t number, count; /* number of the piece, from 0, and how many the step has */
	float share; /* of the step's gradient, as in net_add */
};

struct stepper_calls {
	/* Before the first step: as net_prepare. `how` lives until the last step. */
	enum err (*begin)(void *self, const struct net_update *how, struct why *why);
	/* The next piece of a step. The piece's figures are added to *sums in the order of pieces, at the latest by `step`; *sums lives
	 * until then. Errors as net_step. */
	enum err (*batch)(void *self, const struct net_update *how,
	    const struct stepper_piece *piece, struct net_result *sums);
	/* With how->groups above 1: the pieces since the last fold, or since the step began, are one term of the step's gradient
	 * (net_fold). Not called with `replicas` above 1. */
	enum err (*fold)(void *self);
	/* All pieces of the step were given: moves the parameters. */
	enum err (*step)(void *self, const struct net_update *how);
	/* Between steps: a pass without dropout over one of `batches` batches of an evaluation. Its figures are added to *sums and, unless
	 * counts is NULL, to *counts (scoring.h), in the order of batches, at the latest by the call with batch NULL, which follows the
	 * last batch. Errors as net_eval. */
	enum err (*evaluate)(void *self, const struct net_batch *batch, uint64_t batches,
	    struct net_result *sums, struct counts *counts);
	/* Between steps: reads, or sets, elements [first, first + n) of the parameters, in the order of net_tensors. */
	enum err (*parameters)(void *self, uint64_t first, size_t n, float *values, bool set);
};

struct stepper {
	const struct stepper_calls *calls;
	void *self; /* for the calls */
	const struct net *net; /* the whole network, perhaps of figures only (net_part.planned) */
	/* Above 1: so many runs of pieces are worked on at once, and a step's pieces come in turns: the first of each of the first
	 * `replicas` runs, from the last of these runs to the first, then the second of each, and so on; then of the next runs. */
	uint32_t replicas;
};

/* The network's own passes and steps. */
struct stepper stepper_net(struct net *net);

/* Adds one piece's or batch's figures to the sums. */
void stepper_add(struct net_result *sums, const struct net_result *one);

#endif
