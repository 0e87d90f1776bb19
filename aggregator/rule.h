#ifndef RULE_H
#define RULE_H
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/*
 * How deltas become one update. A rule works on a range of elements and reads each delta's part through a
 * callback, so that memory is O(range) whatever the number of devices. Pure: no files, threads, clock or log.
 *
 * Several threads may fold disjoint ranges of one round at the same time. The result for an element depends
 * only on the inputs in the order given (callers give device-id order), never on how ranges were cut.
 */

/* Largest count a rule asks read_tile for at once. */
#define RULE_TILE 16384

struct rule_input {
	/* Decodes elements [first, first+count) of delta number `delta` into out (count floats, count <= RULE_TILE).
	 * Called from the folding thread; must be safe for concurrent calls with different `out`. */
	enum err (*read_tile)(
	    void *context, size_t delta, uint64_t first, size_t count, float *out);
	void *context;
	size_t deltas; /* number of deltas, at least 1 */
	const double
	    *weights; /* one per delta, >= 0, sum > 0; examples already capped by the caller */
};

struct rule {
	const char *name;
	/* Writes the update for [first, first+count) to update[0..count). ERR_NUMERIC if a value is not finite,
	 * ERR_INVALID if the weights are not as above, ERR_NOMEM, or what read_tile returned; update is then
	 * undefined. */
	enum err (*fold)(const struct rule_input *in, uint64_t first, size_t count, float *update);
};

/* "mean": the mean weighted by `weights` (McMahan et al. 2017), accumulated in f64, rounded once.
 * NULL if there is no such rule. */
const struct rule *rule_find(const char *name);

#endif
