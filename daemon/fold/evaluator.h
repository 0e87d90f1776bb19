#ifndef EVALUATOR_H
#define EVALUATOR_H
#include "job_fold.h"
#include "job_list.h"

/*
 * Measures new models on the coordinator's own data, beside the thread that folds: several at a time, of one owner's jobs one at a
 * time, on all cores at a low priority. An evaluation ends, without a figure, when its deadline is over, when its job ends, and
 * when the coordinator stops: each within one batch per thread.
 */
struct evaluator;

struct evaluation {
	const struct engine_fold *f;
	const float *params; /* of the model, in the network's order */
	struct store_metric *out; /* written if there is a figure */
	char *why; /* of ENGINE_UNMEASURED_MAX: why there is none, if the data cannot be had */
	struct counts **
	    counts; /* NULL; likewise, if the job asks for some and the loss is a number: the caller's */
	void (*done)(void *context, void *round); /* on a thread of the evaluator's */
	void *context, *round;
};

ERR_MUST_USE enum err evaluator_new(
    struct evaluator **out, const struct services *services, unsigned threads);
/* Keeps a place for this owner, if one is free and the owner has none. */
bool evaluator_takes(struct evaluator *e, const uint8_t owner[32]);
/* Gives back the place that was kept. */
void evaluator_leaves(struct evaluator *e, const uint8_t owner[32]);
/* Copies v, whose pointers stay until done is called, into the place that was kept for its owner. ERR_NOMEM: it is given back. */
ERR_MUST_USE enum err evaluator_begin(struct evaluator *e, const struct evaluation *v);
/* Breaks off what runs; every done has been called after that. */
void evaluator_free(struct evaluator *e);

#endif
