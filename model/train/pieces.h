#ifndef PIECES_H
#define PIECES_H
#include <stdbool.h>

#include "err.h"
#include "prng.h"

struct batch;
struct dataset;
struct local_spec;
struct net;

/* Streams of a device's seed. */
enum { PIECES_ORDER, PIECES_DROPOUT };

/*
 * Of which examples the steps of a local training are made, and when it is over. Each epoch has an order of its own, drawn from the
 * seed. A step takes the next local->batch examples, times local->accumulate, in pieces of which each is one pass; at the end of an epoch
 * it takes what is left, but for a piece with fewer examples than local->least, which wait for the next epoch. A step whose labels
 * all weigh nothing is none.
 *
 *     while (pieces_step(p)) { while (pieces_next(p, &piece)) ...; pieces_made(p); }
 */
struct pieces {
	/* Given, and the caller's. */
	const struct net *net; /* what labels weigh */
	const struct dataset *data;
	const struct local_spec *local;
	const struct batch *batch; /* room for the labels of an example */
	/* Of the plan, see pieces_plan. */
	uint32_t size; /* examples of a whole piece */
	size_t step_examples;
	uint32_t parts; /* pieces of a whole step */
	uint32_t groups; /* of them, whose gradients are added up first; 1: there are none */
	uint64_t planned; /* steps; 0 if only the clock decides */
	/* Of the training under way. */
	uint32_t *order;
	struct prng shuffle;
	double began; /* monotonic seconds */
	size_t next; /* where the order goes on */
	size_t first, at, end; /* of the step's examples in the order; `at` is the next piece */
	double weight; /* of them all in the mean loss */
	uint64_t steps, epochs; /* made */
	uint64_t passed; /* examples that all steps took, the same one counted again */
	bool done;
};

struct piece {
	size_t first; /* in the order */
	uint32_t n; /* examples */
	double share; /* of what the step's examples weigh */
	uint32_t number, count; /* of the step's pieces, from 0 */
	bool folds; /* the last of a group */
};

/* Sizes and numbers of a training by `local` with so many examples as the set has. */
void pieces_plan(struct pieces *p, const struct local_spec *local, const struct dataset *data);
/* After the plan; net and batch are set. pieces_deinit is due in either case. ERR_NOMEM; ERR_INVALID: there is nothing to make a step of. */
ERR_MUST_USE enum err pieces_init(struct pieces *p, uint64_t seed, struct why *why);
void pieces_deinit(struct pieces *p);
/* Goes to the next step; false: the last was made. */
bool pieces_step(struct pieces *p);
/* The step's next piece; false: it has no more. */
bool pieces_next(struct pieces *p, struct piece *out);
/* The step was made. The time that steps took so far tells whether another one would end nearer to local->seconds: devices of any speed
 * end within half a step of it. */
void pieces_made(struct pieces *p);
/* Different examples that the work took. Of work that was broken off, the same share of those that all of it would have taken as steps
 * were made: three of ten epochs count as three tenths of the examples. */
uint64_t pieces_examples(const struct pieces *p, bool partial);

#endif
