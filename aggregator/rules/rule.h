#ifndef RULE_H
#define RULE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

struct rule_spec;

/*
 * How the deltas of a round become one update. A rule works on ranges of elements and reads each delta's part through a
 * callback, so that memory is O(range) for any number of devices. Pure: no files, threads, clock or log.
 *
 *     rule_new -> [ rule_measure of every strip -> rule_plan ] -> rule_fold of every range -> rule_free
 *
 * The middle is for rules that compare whole deltas with each other (rule_measures). Several threads may measure different
 * strips, and later fold disjoint ranges, of one rule at a time. The result for an element depends only on the inputs in
 * the order given (callers give device-id order), never on how ranges were cut.
 *
 * mean               the mean weighted by examples (McMahan et al. 2017)
 * median             of each coordinate; of an even number, the mean of the two in the middle (Yin et al. 2018)
 * trimmed_mean       of each coordinate, without the `hostile` lowest and highest (Yin et al. 2018)
 * krum               the mean of the `picks` deltas that are nearest to their neighbours (Blanchard et al. 2017)
 * bulyan             of n - 2f deltas picked by Krum, for each coordinate the mean of the n - 4f nearest to their median
 *                    (El Mhamdi et al. 2018)
 * geometric_median   by smoothed Weiszfeld iterations (RFA; Pillutla et al. 2022); weighted if `hostile` is 0
 * centered_clipping  around the last update (Karimireddy et al. 2021)
 *
 * Before any of them: norm bounding (a delta longer than the bound is shortened to it), bucketing (means of `bucket` deltas
 * each take their place; Karimireddy et al. 2022) or nearest-neighbour mixing (each is replaced by the mean of its n - f
 * nearest; Allouah et al. 2023). Only mean, and geometric_median with `hostile` 0, use the weights: under these a device that claims more
 * examples than all others together decides alone. After mixing no rule uses the weights.
 */

/* Largest count a rule asks read_tile for at once, and the most that rule_fold takes. */
#define RULE_TILE 16384
/* The most deltas for rules other than the plain mean; distances need memory of this number's square. */
#define RULE_DELTAS_MAX 1024

struct stop;
struct rule_input {
	/* Decodes elements [first, first+count) of delta number `delta` into out (count floats, count <= RULE_TILE). Must be
	 * safe for concurrent calls with different `out`. */
	enum err (*read_tile)(
	    void *context, size_t delta, uint64_t first, size_t count, float *out);
	void *context;
	uint64_t elements; /* of each delta */
	size_t deltas; /* number of deltas, at least 1 */
	/* One per delta, >= 0, sum > 0; examples already capped by the caller. */
	const double *weights;
	const float *centre; /* rule_keeps: the last update, `elements` floats; zero at first */
	uint64_t seed; /* of bucketing: another one each round */
	/* Once the stop is asked for, rule_measure and rule_plan end with ERR_CLOSED. NULL: never. */
	struct stop *stop;
};

struct rule;

/* The cost of a rule for so many deltas, to bound it beforehand. Zeros for a rule that rule_check refuses. */
struct rule_cost {
	/* Operations for each element, and once a round; one is about as long as a multiply-add. */
	double each, once;
	uint64_t bytes; /* of memory beside input and update, with so many threads */
};
struct rule_cost rule_cost(const struct rule_spec *spec, size_t deltas, unsigned threads);

/* Is there a rule of this name? */
bool rule_known(const char *name);
/* Does the rule begin from the update of the round before? */
bool rule_keeps(const struct rule_spec *spec);
/* May rounds of at least `deltas` reports use this rule? ERR_INVALID, ERR_LIMIT with the reason. */
ERR_MUST_USE enum err rule_check(const struct rule_spec *spec, size_t deltas, struct why *why);

/* *spec is copied; what `in` points to stays the caller's and must live as long as the rule. Errors of rule_check, ERR_NOMEM,
 * ERR_INVALID if the weights are not as above. */
ERR_MUST_USE enum err rule_new(
    struct rule **out, const struct rule_spec *spec, const struct rule_input *in, struct why *why);
void rule_free(struct rule *r);
/* How many strips rule_measure has to measure before rule_plan; 0 if this rule needs neither call. */
unsigned rule_measures(const struct rule *r);
/* rule_measure and rule_plan fail with what read_tile returned, ERR_NOMEM or ERR_CLOSED. */
ERR_MUST_USE enum err rule_measure(struct rule *r, unsigned strip);
ERR_MUST_USE enum err rule_plan(struct rule *r);
/* Writes the update for [first, first+count) to update[0..count). ERR_NUMERIC if a value is not finite, ERR_NOMEM, or what
 * read_tile returned; update is then undefined. */
ERR_MUST_USE enum err rule_fold(const struct rule *r, uint64_t first, size_t count, float *update);

#endif
