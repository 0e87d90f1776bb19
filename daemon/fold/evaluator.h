#ifndef EVALUATOR_H
#define EVALUATOR_H
#include "engine.h"

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
	struct counts **
	    counts; /* NULL; likewise, if the job asks for some and the loss is a number: the caller's */
	void (*done)(void *context, void *round); /* on a thread of the evaluator's */
	void *context, *round;
};

ERR_MUST_USE enum err evaluator_new(
    struct evaluator **out, const struct services *services, unsigned threads);
/* Is a place free, and none taken by this owner? */
bool evaluator_takes(struct evaluator *e, const uint8_t owner[32]);
/* Copies v, whose pointers stay until done is called. Only after evaluator_takes, by one thread. ERR_NOMEM. */
ERR_MUST_USE enum err evaluator_begin(struct evaluator *e, const struct evaluation *v);
/* Breaks off what runs; every done has been called after that. */
void evaluator_free(struct evaluator *e);

#endif
