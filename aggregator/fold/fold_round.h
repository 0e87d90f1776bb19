#ifndef FOLD_ROUND_H
#define FOLD_ROUND_H
#include "fold_sum.h"
#include "server_step.h"

/*
 * A round's arithmetic as a whole: rules that compare deltas look at them first, then tile by tile of RULE_TILE elements the deltas
 * are summed and the sum moves the weights, on any number of threads. The coordinator, the simulator and `rivulet verify` fold with
 * this alone: the bits depend on the job, the base, its state, and the deltas in their order, never on the threads.
 *
 *     what is given -> fold_round_plan, fold_round_add of each delta -> step.state -> fold_round_begin -> [ fold_round_compare ]
 *     -> step.data -> fold_round_run -> fold_round_deinit
 */
struct fold_round {
	/* Given. What they point to is the caller's, and outlives the round. */
	const struct job_spec *job;
	const struct tensor_table *table;
	uint64_t number;
	double factor; /* of the schedule's rate (round/policy/scale.h) */
	unsigned threads;
	struct stop *stop; /* looked at before each strip and tile; NULL: nobody asks */
	/* As rule_input.read_tile, of a delta's vector 0, or with variates 1: the change of its device's variate. */
	enum err (*read)(
	    void *context, unsigned vector, size_t delta, uint64_t first, size_t count, float *out);
	void *context;
	/* Its state, data and payload are the caller's, before and after. */
	struct server_step step;
	double norm; /* of the update, once fold_round_run has been there */
	/* Inside. */
	struct fold_sum sum;
	double *weights, *normalisers, *scales; /* one per delta */
	size_t count, room;
};

/* What both halves do in this round, and how large the state is (server_step_floats). ERR_UNSUPPORTED if rule, optimizer or the
 * download's codec are not in this build. */
ERR_MUST_USE enum err fold_round_plan(struct fold_round *r, struct why *why);
/* One more delta, in device-id order. `scale` counts in jobs that take late deltas. ERR_NOMEM. */
ERR_MUST_USE enum err fold_round_add(
    struct fold_round *r, double weight, double normaliser, double scale);
/* Makes the rule, once deltas and state are there; *r stays where it is from now on. Errors of fold_sum_begin. */
ERR_MUST_USE enum err fold_round_begin(struct fold_round *r, struct why *why);
/* The rule looks at all deltas, if it is one that does. Errors as of fold_round_run. */
ERR_MUST_USE enum err fold_round_compare(struct fold_round *r);
/* Moves data and state, comparing first unless fold_round_compare has. An error is that of the first strip or tile that has one, as if one
 * thread had done all in their order: what `read` returned, ERR_NUMERIC (a delta, the update or a weight is not finite), ERR_NOMEM,
 * or ERR_CLOSED, the stop having been asked for. Data and state are then of no use. */
ERR_MUST_USE enum err fold_round_run(struct fold_round *r);
/* All zero is none. */
void fold_round_deinit(struct fold_round *r);

#endif
