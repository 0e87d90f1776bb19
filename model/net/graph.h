#ifndef GRAPH_H
#define GRAPH_H
#include "layer.h"

/*
 * The layers of a net, checked and laid out: which share a buffer, which need gradients, and where everything lies
 * in the two blocks (parameters; activations, gradients, kept values and workspace).
 */
struct graph {
	struct layer *layers;
	size_t count;
	struct layer_shape input;
	struct tensor_table tensors;
	size_t work_at, bytes; /* of the block of activations */
};

/* ERR_INVALID or ERR_LIMIT with the layer's name in why; *g is then empty. `train` false leaves out what only the
 * backward pass needs. */
ERR_MUST_USE enum err graph_build(
    struct graph *g, const struct net_spec *spec, uint32_t max_batch, bool train, struct why *why);
void graph_deinit(struct graph *g);

#endif
