#ifndef ALLOWANCE_H
#define ALLOWANCE_H
#include "recipe.h"

/*
 * How many of its examples a device works on, where the job lets it claim no more than aggregate.max_examples, in a manifest or in the report
 * of an evaluation. Where there are more, that many are drawn: those to train on anew in each round, by the seed of the device's work in it;
 * those to evaluate on once, by the seed of round 0, so that figures of rounds can be compared. Agent, library, simulator and `rivulet
 * train` take the same ones. Pure functions.
 */
struct allowance {
	uint64_t train, validation;
};

/* What is worked on of the training and the validation share, of so many examples. most 0: any number may be claimed. A task that
 * evaluates has its figures from the validation share, or from all examples where the job keeps none. */
struct allowance allowance_of(
    const struct recipe *r, bool evaluates, uint64_t train, uint64_t validation, uint64_t most);
/* Is that less than there is, for a device with so many examples? */
bool allowance_cuts(const struct recipe *r, bool evaluates, uint64_t examples, uint64_t most);
/* How many examples such a job finds on a device: of a text, of so many tokens, what its window makes of them; tokens 0: not a text, or not
 * said. One that is too short counts as one, for the device itself says what is wrong with it. */
uint64_t allowance_examples(const struct data_spec *job, uint64_t examples, uint64_t tokens);
/* The seed that the share to train on, or that to evaluate on, is drawn by. */
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
/* Their places in the list, ascending, of one of the two; the caller frees *indices. ERR_NOMEM; ERR_LIMIT past 32 bits. */
ERR_MUST_USE enum err allowance_draw(
    uint32_t **indices, size_t *count, const struct allowance_want *want, bool to_train_on);

#endif
