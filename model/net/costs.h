#ifndef COSTS_H
#define COSTS_H
#include "net.h"

/*
 * Where the bytes of a net go, read off its plan: also of one that is only planned (net_part.planned). Pure. What steps keep counts once
 * net_prepare was called.
 */
struct costs_layer {
	const char *name; /* the net's */
	enum layer_type type;
	uint64_t parameters; /* bytes */
	uint64_t
	    kept; /* from the way forward for the way back, or of the output: of the largest batch, of one context */
	uint64_t
	    each; /* about that, of one example: kept without what does not grow with the batch, divided */
	/* Of these only the largest sets of such that live at once take room in the shared block: */
	uint64_t passing; /* an output that is not kept, of the largest batch */
	uint64_t gradient; /* of the output; 0 where it has none, or that of its input */
	uint64_t work; /* workspace, of which all layers share the largest */
};

struct costs {
	uint64_t weights, optimizer,
	    gradient; /* the state; gradient: of all tensors; of the largest, and of each that layers share; or none */
	uint64_t contexts; /* what is kept */
	uint64_t shared; /* outputs and gradients that live for a while */
	uint64_t work;
};

size_t costs_layers(const struct net *net);
/* i below that. */
void costs_layer(const struct net *net, size_t i, struct costs_layer *out);
/* They add up to net_bytes. */
void costs_all(const struct net *net, struct costs *out);

#endif
