#ifndef MEAN_H
#define MEAN_H
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/* Vectors to be averaged, read piece by piece. */
struct mean_input {
	/* As rule_input.read_tile: count <= MEAN_TILE. */
	enum err (*read_tile)(
	    void *context, size_t delta, uint64_t first, size_t count, float *out);
	void *context;
	size_t deltas; /* at least 1 */
	const double *weights; /* one per delta, >= 0, sum > 0 */
};
#define MEAN_TILE 16384

/* The sum of weight times element over the deltas in order, in f64, divided once by the sum of the weights (added in the
 * same order), rounded once to f32. ERR_INVALID if the weights are not as above, ERR_NUMERIC if a value is not finite,
 * ERR_NOMEM, or what read_tile returned.
 *
 * Because the division comes last, one delta of any weight from 2^-64 to 2^64 gives back its own bits, and the
 * products are exact while weights are whole numbers up to 2^29. */
ERR_MUST_USE enum err mean_fold(
    const struct mean_input *in, uint64_t first, size_t count, float *update);

#endif
