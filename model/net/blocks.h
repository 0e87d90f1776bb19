#ifndef BLOCKS_H
#define BLOCKS_H
#include <stdbool.h>
#include <stddef.h>

/*
 * Where a network falls into blocks, each of which the way back works out again from the one tensor that came into it: cuts are where
 * exactly one tensor crosses, such as behind the sum of a residual connection. The last block is still there when the way back begins, and
 * in front of the first layer that trains nothing is needed. Pure.
 */
struct blocks_in {
	const struct layer *layers;
	size_t count;
	const size_t *root; /* of a layer: whose bytes its output is; count: the net's input */
	const size_t *last_user; /* of a root: the last layer that reads it */
	const size_t *bytes; /* of a layer: what it holds for the way back if nothing is dropped */
};

/* May it be cut in front of layer c? cut[0] is not set. */
void blocks_cuts(const struct blocks_in *in, bool *cut);
/* Sets end[i] to the end of layer i's block, 0 for layers of none: what lies between cuts is joined to blocks of up to `limit` bytes. */
void blocks_find(const struct blocks_in *in, const bool *cut, size_t limit, size_t *end);

#endif
