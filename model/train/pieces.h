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
 * Which examples each step of a local training takes, and which step is the last. Each epoch has an order of its own, drawn from the
 * seed. A step takes the next local->batch x local->accumulate examples in pieces, each of which is one pass; at the end of an epoch
 * a step takes what is left, except a piece with fewer examples than local->least, which wait for the next epoch. A step whose labels
 * all weigh nothing is skipped.
 *
 *     while (pieces_step(p)) { while (pieces_next(p, &piece)) ...; pieces_made(p); }
 */
struct pieces {
	/* Set by the caller, who owns what they point to. */
	const struct net *net; /* for the weights of labels */
	const struct dataset *data;
	const struct local_spec *local;
	const struct batch *batch; /* room for the labels of an example */
	uint32_t
	    replicas; /* runs of pieces that come in turns (struct stepper); 0 and 1: none do */
	/* Set by pieces_plan. */
	uint32_t size; /* examples of a whole piece */
	size_t step_examples; /* examples of a whole step */
	uint32_t parts; /* pieces of a whole step */
	uint32_t groups; /* groups of pieces whose gradients are added up first; 1: no groups */
	uint64_t planned; /* steps; 0 if only the clock decides */
	/* Of the current training. */
	uint32_t *order;
	struct prng shuffle;
	double began; /* monotonic seconds */
	size_t next; /* place in `order` of the next step's first example */
	/* Places in `order`: the step's examples are [first, end). */
	size_t first, end;
	uint32_t turn; /* of the step's pieces: the next one, in the order of struct stepper */
	double weight; /* of the step's examples in the mean loss */
	uint64_t steps, epochs; /* made so far */
	uint64_t passed; /* examples that all steps took; an example taken twice counts twice */
	bool done;
};

struct piece {
	size_t first; /* place of the first example in pieces.order */
	uint32_t n; /* examples */
	double share; /* share of the weight of the step's examples */
	uint32_t number, count; /* number of this piece, from 0, and how many pieces the step has */
	bool folds; /* this piece is the last of a group */
};

/* Plans a training by `local` with the examples of the set. */
void pieces_plan(struct pieces *p, const struct local_spec *local, const struct dataset *data);
/* Begins a training, after pieces_plan and with net and batch set. pieces_deinit is due also after an error. ERR_NOMEM; ERR_INVALID: no
 * step can be made. */
ERR_MUST_USE enum err pieces_init(struct pieces *p, uint64_t seed, struct why *why);
void pieces_deinit(struct pieces *p);
/* Goes to the next step; false: the last step was made. */
bool pieces_step(struct pieces *p);
/* Pieces of a run, whose gradients are one term of a whole step's sum: parts / groups, rounded up. */
uint32_t pieces_run(const struct pieces *p);
/* The step's next piece; false: the step has no more pieces. */
bool pieces_next(struct pieces *p, struct piece *out);
/* Called when the step was made. Decides from the time of the steps so far whether another step would end nearer to local->seconds: a
 * device of any speed ends within half a step of that time. */
void pieces_made(struct pieces *p);
/* How many different examples the training took. partial: the share of the steps made times the different examples of the whole training:
 * three of ten epochs count as three tenths of the examples. */
uint64_t pieces_examples(const struct pieces *p, bool partial);

#endif
