#ifndef BUILTIN_H
#define BUILTIN_H
#include "abort_reason.h"
#include "messages.h"
#include "task_kind.h"
#include "train.h"

struct tensor;
struct tensor_table;

/*
 * A task in, changed weights and figures out, whoever asks: the agent, a program in its place, a simulation. The only way from a task with
 * layers to its delta.
 */

/* Where tensors are read: the base model's, what is added to gradients, the trained ones. */
struct training_source {
	/* len bytes of tensor t, one of the table, from its byte `at` on. */
	enum err (*read)(void *context, const struct tensor *t, uint64_t at, size_t len, void *out);
	/* Nothing will be read any more, so that the memory behind the source may be freed. NULL: there is none. */
	void (*spent)(void *context);
	void *context;
};

struct training_in {
	const struct recipe *recipe;
	enum task_kind kind;
	uint64_t seed, round; /* the job's; from 1 */
	const uint8_t *device; /* 32 bytes */
	const struct tensor_table *table; /* the base model's, with the job's roles */
	struct training_source base;
	const struct training_source *shift; /* of the delta's tensors; NULL: zeros */
	const struct dataset *train, *validation; /* validation->count may be 0 */
	/* What makes the steps, and evaluates; NULL: a network in this process's memory. */
	const struct stepper *stepper;
	uint64_t threads; /* of that network, at most; 0: all of the machine's */
	uint64_t memory_bytes; /* that it may take; 0: no limit */
	const char *kernels; /* the home that keeps the choice (kernel_choice.h); NULL: none */
	uint64_t epochs; /* of a training, at most; 0: as the recipe says */
	double seconds; /* time budget; <= 0: none */
	bool (*stop)(void *context); /* finish early with what there is; may be NULL */
	void *context;
	/* Called when a training is over: `after` gives all tensors of the table, those that the network lacks as they were, until the call
	 * returns. An error of it is the training's. */
	enum err (*take)(void *taker, const struct training_source *after, struct why *why);
	void *taker;
};

struct training_out {
	struct train_result result; /* of a task that evaluates only the examples */
	uint16_t optimizer; /* MANIFEST_SGD, ... */
	struct report report;
	bool has_report;
	struct counts *counts; /* owned; report.counts */
	enum abort_reason abort; /* on failure: why */
};

/* Blocks. training_out_deinit is due even after a failure. */
ERR_MUST_USE enum err training_run(
    const struct training_in *in, struct training_out *out, struct why *why);
void training_out_deinit(struct training_out *out);

#endif
