#ifndef ALLOWANCE_H
#define ALLOWANCE_H
#include "recipe.h"

/*
 * How many of its examples a device works on, where the job lets it claim no more than aggregate.max_examples, in a manifest or in the
 * report of an evaluation. Where there are more, that many are drawn: those to train on anew in each round, by the seed of the device's
 * work in it; those to evaluate on once, by the seed of round 0, so that figures of rounds can be compared. Agent, library, simulator and
 * `rivulet train` take the same ones. Pure functions.
 */
struct allowance {
	uint64_t train, validation;
};

/* How many of `train` and `validation` examples (the device's two shares) a task works on. most: how many the device may claim; 0: any
 * number. A task that evaluates uses the validation share, or all examples where the job keeps no validation share. */
struct allowance allowance_of(
    const struct recipe *r, bool evaluates, uint64_t train, uint64_t validation, uint64_t most);
/* Does a task work on fewer examples than the device has for it, with so many `examples` and the limit `most`? */
bool allowance_cuts(const struct recipe *r, bool evaluates, uint64_t examples, uint64_t most);
/* How many examples a job finds in a device's data set: of a text of so many tokens, how many windows of the job fit. tokens 0: the set is
 * no text, or the device did not tell. A text that is too short for a window counts as one example: the device itself reports the error. */
uint64_t allowance_examples(const struct data_spec *job, uint64_t examples, uint64_t tokens);
/* The seed by which the examples to train on, or those to evaluate on, are drawn. */
uint64_t allowance_seed(
    uint64_t job_seed, uint64_t round, const uint8_t device[32], bool to_train_on);
/* What a device with so many examples in one list works on. */
struct allowance_want {
	const struct recipe *recipe;
	bool evaluates;
	uint64_t examples, most;
	uint64_t job_seed, round;
	const uint8_t *device; /* 32 bytes */
};
struct allowance allowance_count(const struct allowance_want *want);
/* The places in the device's list of the examples to train on, or of those to evaluate on, ascending; the caller frees *indices. ERR_NOMEM;
 * ERR_LIMIT past 32 bits. */
ERR_MUST_USE enum err allowance_draw(
    uint32_t **indices, size_t *count, const struct allowance_want *want, bool to_train_on);

#endif
