#ifndef BLOCKS_H
#define BLOCKS_H
#include <stdbool.h>
#include <stddef.h>

/*
 * Cuts a network into blocks, each of which the backward pass computes again from the one tensor that enters the block. A cut is possible
 * where cuts.h says so, such as behind the sum of a residual connection. The last block need not be computed again, nor layers
 * before the first one that trains. Pure.
 */
struct blocks_in {
	const struct layer *layers;
	size_t count;
	/* Of each layer: the layer whose output's bytes its own output shares; count: the net's input. */
	const size_t *root;
	/* Of each layer: what it keeps for the backward pass if nothing is dropped. */
	const size_t *bytes;
};

/* Sets cut[c] for c > 0: may the network be cut in front of layer c? */
void blocks_cuts(const struct blocks_in *in, bool *cut);
/* Sets end[i] to the end of layer i's block, 0 for layers of no block: the parts between cuts are joined to blocks of up to `limit`
 * bytes. */
void blocks_find(const struct blocks_in *in, const bool *cut, size_t limit, size_t *end);

#endif
