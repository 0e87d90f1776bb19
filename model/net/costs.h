#ifndef COSTS_H
#define COSTS_H
#include "net.h"

/*
 * How many bytes each part of a net takes, from the net's plan; also for a net that is only planned (net_part.planned). Pure. What steps
 * keep is included once net_prepare was called.
 */
struct costs_layer {
	const char *name; /* the layer's name, owned by the net */
	enum layer_type type;
	uint64_t parameters; /* bytes */
	uint64_t output; /* bytes of its output, wherever that lies, for the largest batch */
	/* What the layer keeps for the backward pass, and a kept output: for the largest batch, in one context. */
	uint64_t kept;
	/* `kept` per example, about: without what does not grow with the batch. */
	uint64_t each;
	/* passing and gradient lie in the shared part, which is only as large as what is live at one time. */
	uint64_t passing; /* an output that is not kept, for the largest batch */
	/* Of the output; 0 if there is none, or if it is written over another gradient. */
	uint64_t gradient;
	uint64_t work; /* workspace, of which all layers share the largest */
};

struct costs {
	/* In the state. gradient: of all tensors, and of each that layers share once more for every such layer but one; or of the largest
	 * and of each that layers share; or 0. */
	uint64_t weights, optimizer, gradient;
	uint64_t contexts; /* what is kept for backward passes, in all contexts */
	uint64_t shared; /* outputs and gradients that are live for a part of a pass */
	uint64_t work;
};

size_t costs_layers(const struct net *net);
/* i < costs_layers(net). */
void costs_layer(const struct net *net, size_t i, struct costs_layer *out);
/* The members of *out add up to net_bytes. */
void costs_all(const struct net *net, struct costs *out);

#endif
