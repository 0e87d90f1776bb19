#ifndef FOLD_COST_H
#define FOLD_COST_H
#include <stddef.h>
#include <stdint.h>

struct aggregate_spec;
struct download_spec;
struct tensor_table;

/*
 * The time and memory that folding a round takes, from the job's document and its model's table alone: a coordinator bounds the cost before
 * it accepts a job, and keeps memory free before it folds a round.
 */
struct fold_cost {
	double work; /* arithmetic operations, each about as long as a multiply-add */
	uint64_t
	    bytes; /* of memory: the new model, what the job keeps between rounds, what the rule needs, the encoded download, a norm per tile */
};

/* The cost of a round of so many deltas on so many threads; zeros if the rule, optimizer or codec is not in this build. */
struct fold_cost fold_cost(const struct aggregate_spec *aggregate,
    const struct download_spec *download, const struct tensor_table *table, size_t deltas,
    unsigned threads);

#endif
