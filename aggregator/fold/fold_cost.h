#ifndef FOLD_COST_H
#define FOLD_COST_H
#include <stddef.h>
#include <stdint.h>

struct aggregate_spec;
struct download_spec;
struct tensor_table;

/*
 * What folding a round takes, known from the job's document and its model's table alone, so that it can be bounded before a job is taken
 * and room be kept before a round is folded.
 */
struct fold_cost {
	double work; /* operations on numbers, each about as long as a multiply-add */
	uint64_t
	    bytes; /* of memory: the new model, what the job keeps between rounds, what the rule needs */
};

/* Of a round of so many deltas on so many threads; zeros for what is not in this build. */
struct fold_cost fold_cost(const struct aggregate_spec *aggregate,
    const struct download_spec *download, const struct tensor_table *table, size_t deltas,
    unsigned threads);

#endif
