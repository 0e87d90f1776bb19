#ifndef DRAW_H
#define DRAW_H
#include <stddef.h>
#include <stdint.h>

/*
 * Where the randomness inside a step comes from. Either from one generator, number after number, so that a pass depends on all that was
 * drawn before; or from a number's place, so that any part of a step can be computed by anybody, in any order, and again.
 */
struct draw {
	struct prng *stream; /* NULL: by place */
	uint64_t seed; /* of this local training */
	uint64_t step; /* from 0, below 2^48 */
	uint32_t micro_batch; /* number within the step, from 0, below 2^16 */
	uint64_t example; /* number, within the micro-batch, of the pass's first example */
};

/*
 * n numbers, uniform in [0, 1) with 24 bits, for the elements of a layer of `size` elements per example, from the pass's first
 * example on; `layer` is its index in the whole network. By place: word e % 4 of Philox4x32-10 for element e of the micro-batch. The key
 * is the seed; the counter, low word first, e / 4 (48 bits), layer (16), step's low word (32), micro-batch (16), step's high
 * part (16).
 */
void draw_floats(const struct draw *d, uint32_t layer, size_t size, float *out, size_t n);

#endif
