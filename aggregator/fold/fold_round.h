#ifndef FOLD_ROUND_H
#define FOLD_ROUND_H
#include "fold_sum.h"
#include "server_step.h"

/*
 * A round's arithmetic as a whole: rules that compare deltas read all deltas first; then, tile by tile of RULE_TILE elements, the deltas
 * are summed and the sum moves the weights, on any number of threads. The coordinator, the simulator and `rivulet verify` all fold with
 * these calls: the bits depend on the job, the base, its state, and the deltas in their order, never on the threads.
 *
 *     the given members -> fold_round_plan, fold_round_add of each delta -> step.state -> fold_round_begin -> [ fold_round_compare ]
 *     -> step.data -> fold_round_run -> fold_round_deinit
 */
struct fold_round {
	/* Given. What these members point to is the caller's, and must outlive the fold_round. */
	const struct job_spec *job;
	const struct tensor_table *table;
	uint64_t number;
	double factor; /* of the schedule's rate (round/policy/scale.h) */
	unsigned threads;
	struct stop *stop; /* checked before each strip and tile; NULL: never asked for */
	/* As rule_input.read_tile. vector 0: the delta; 1, with variates: the change of its device's control variate. */
	enum err (*read)(
	    void *context, unsigned vector, size_t delta, uint64_t first, size_t count, float *out);
	void *context;
	/* step.state, step.data and the download's payload are the caller's, before and after. */
	struct server_step step;
	double norm; /* of the update; set by fold_round_run */
	/* For fold_round.c alone. */
	struct fold_sum sum;
	double *weights, *normalisers, *scales; /* one per delta */
	size_t count, room;
};

/* Sets up both halves of the fold; server_step_floats of r->step is then the size of the state. ERR_UNSUPPORTED if rule, optimizer or the
 * download's codec are not in this build. */
ERR_MUST_USE enum err fold_round_plan(struct fold_round *r, struct why *why);
/* Adds a delta, in device-id order. `scale` is used in jobs that take late deltas. ERR_NOMEM. */
ERR_MUST_USE enum err fold_round_add(
    struct fold_round *r, double weight, double normaliser, double scale);
/* Makes the rule, after all deltas and the state are set; *r must not move in memory from now on. Errors of fold_sum_begin. */
ERR_MUST_USE enum err fold_round_begin(struct fold_round *r, struct why *why);
/* Lets a rule that compares whole deltas read them all; does nothing for other rules. Errors of fold_round_run. */
ERR_MUST_USE enum err fold_round_compare(struct fold_round *r);
/* Moves data and state; calls fold_round_compare first, unless the caller has. The error is that of the first strip or tile that fails, as
 * if one thread did all in order: what `read` returned, ERR_NUMERIC (a delta, the update or a weight is not finite), ERR_NOMEM,
 * or ERR_CLOSED once the stop was asked for. Data and state are then undefined. */
ERR_MUST_USE enum err fold_round_run(struct fold_round *r);
/* Frees what *r owns; an all-zero *r is legal. */
void fold_round_deinit(struct fold_round *r);

#endif
