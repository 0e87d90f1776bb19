#ifndef FOOTPRINT_H
#define FOOTPRINT_H
#include "dataset.h"
#include "recipe.h"
#include "settings.h"
#include "tensor.h"

/*
 * What a task takes of a device's memory, in bytes of anonymous memory: what the kernel cannot drop. Models and mapped data sets are files
 * beside it. Pure but for the allocations of a network that is built and freed.
 */
struct plan_footprint {
	uint64_t process; /* an agent that waits */
	uint64_t examples; /* what of the data set lies in memory */
	uint64_t weights; /* of the task in hand */
	uint64_t training; /* the built-in trainer, beside these */
	uint64_t
	    delta; /* making the delta, once the training is over, beside process, examples and weights */
	bool program; /* a program trains, whose memory is its own */
	uint64_t peak;
};

/* What it moves, in bytes of bodies: heads of requests come to some hundred more. */
struct plan_bytes {
	uint64_t model; /* a file of one that the job made */
	uint64_t delta; /* at most, where its codec has no fixed size */
};
ERR_MUST_USE enum err plan_footprint_bytes(struct plan_bytes *out, const struct recipe *recipe,
    const struct tensor_table *table, struct why *why);

/* What the data set takes: the device's share, and its parts for training and validation. */
uint64_t plan_footprint_examples(const struct dataset *all, const struct recipe *recipe);

/* table: the model's, with the job's roles. train: its count and what an example is are looked at. ERR_LIMIT above the settings'
 * memory_bytes; else as trainer_builtin_bytes. */
ERR_MUST_USE enum err plan_footprint(struct plan_footprint *out, const struct recipe *recipe,
    const struct tensor_table *table, const struct settings *settings, const struct dataset *train,
    uint64_t examples_bytes, struct why *why);

#endif
