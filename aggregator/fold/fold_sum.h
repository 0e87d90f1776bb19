#ifndef FOLD_SUM_H
#define FOLD_SUM_H
#include "normalise.h"
#include "rule.h"

/*
 * The first half of a fold: the update that a rule makes of the deltas of a round, and the update's weight. This half needs neither
 * the model nor an optimizer's state, so that a program that only passes sums on needs nothing else.
 *
 * Sums of parts can be summed again: a part's update is one more delta with the part's examples and normaliser, and for the rule
 * `mean` the result is that of all deltas at once but for rounding (an update is rounded to f32). Other rules look at each
 * delta, and give something else.
 *
 *     set spec, table, deltas -> fold_sum_begin -> [ fold_sum_measure of every strip -> fold_sum_plan ] -> fold_sum_run of every
 *     range -> fold_sum_end
 *
 * As in rule.h the ranges of one sum may be run by several threads, and the bits depend on the deltas in their order alone.
 */
struct fold_sum {
	const struct aggregate_spec *spec;
	const struct tensor_table *table;
	/* In device-id order. fold_sum_begin sets `elements`; the caller sets the rest. */
	struct rule_input deltas;
	/* spec->variates: changes of the same devices' control variates. */
	struct rule_input changes;
	const double *normalisers; /* spec->normalise: one per delta */
	const double *scales; /* factors of the deltas; NULL: none */
	struct rule *rule; /* between fold_sum_begin and fold_sum_end */
	/* Between fold_sum_begin and fold_sum_end; NULL: deltas are not scaled. */
	struct normalise *scaled;
};

/* The weight of an update in a sum of sums. */
struct fold_sum_weight {
	double examples; /* of all deltas */
	double normaliser; /* spec->normalise: their mean, weighted by examples; else 0 */
};

/* The seed of a rule's random choices, for deltas.seed. */
uint64_t fold_sum_seed(uint64_t job_seed, uint64_t round);
/* Makes the rule. Errors of rule_new and normalise_new. */
ERR_MUST_USE enum err fold_sum_begin(struct fold_sum *s, struct why *why);
/* Some rules compare whole deltas first: while fold_sum_measures is not 0, the caller calls fold_sum_measure for that many strips, in any
 * order and by any threads, then fold_sum_plan. */
unsigned fold_sum_measures(const struct fold_sum *s);
ERR_MUST_USE enum err fold_sum_measure(const struct fold_sum *s, unsigned strip);
ERR_MUST_USE enum err fold_sum_plan(const struct fold_sum *s);
/* The update for elements [first, first + count), count <= RULE_TILE. Errors of rule_fold. */
ERR_MUST_USE enum err fold_sum_run(
    const struct fold_sum *s, uint64_t first, size_t count, float *update);
/* spec->variates: the sum of the control variates' changes for elements [first, first + count). Errors of control_sum. */
ERR_MUST_USE enum err fold_sum_changes(
    const struct fold_sum *s, uint64_t first, size_t count, double *sum);
/* After fold_sum_begin. */
struct fold_sum_weight fold_sum_weight(const struct fold_sum *s);
void fold_sum_end(struct fold_sum *s);

#endif
