#ifndef STEPPER_H
#define STEPPER_H
#include "net.h"

/*
 * What makes a training's steps, and evaluates: a table of calls. The network in this process's memory is one (stepper_net); another
 * machine, several, or another processor can be one. Which examples a step takes, in which order, and when it was the last is not its
 * business (pieces.h, train.h).
 *
 * One thread calls, one after the other. All may block. After a failure only `parameters` may be called.
 */
struct counts;

/* A piece of a step: all of it, or one of several. */
struct stepper_piece {
	struct net_batch
	    batch; /* all that it points to is the caller's again when the call returns; draw: as net.h */
	float share; /* of the step's gradient, as in net_add */
	uint32_t count; /* pieces of this step; batch.draw says which of them it is */
};

struct stepper_calls {
	/* Before the first step: as net_prepare. `how` lives until the last one. */
	enum err (*begin)(void *self, const struct net_update *how, struct why *why);
	/* The next piece of a step. Its figures are added to *sums, piece after piece, before `step` has returned: it lives as long. Errors as net_step. */
	enum err (*batch)(void *self, const struct net_update *how,
	    const struct stepper_piece *piece, struct net_result *sums);
	/* With how->groups above 1: the pieces since the last fold, or since the step began, are one term of its gradient (net_fold). */
	enum err (*fold)(void *self);
	/* All pieces of the step were given: it moves the parameters. */
	enum err (*step)(void *self, const struct net_update *how);
	/* Between steps: a pass without dropout, whose figures are added to *sums and, unless that is NULL, to *counts (scoring.h), batch
	 * after batch, before the call with batch NULL has returned, which comes behind the last. Errors as net_eval. */
	enum err (*evaluate)(void *self, const struct net_batch *batch, struct net_result *sums,
	    struct counts *counts);
	/* Between steps: reads, or sets, elements [first, first + n) of the parameters, in the order of net_tensors. */
	enum err (*parameters)(void *self, uint64_t first, size_t n, float *values, bool set);
};

struct stepper {
	const struct stepper_calls *calls;
	void *self; /* the caller's, like all below */
	const struct net
	    *net; /* the whole network; it may be one of figures only (net_part.planned) */
};

/* The network's own passes and steps. */
struct stepper stepper_net(struct net *net);

#endif
