#ifndef GRAPH_H
#define GRAPH_H
#include "backend.h"
#include "net.h"
#include "tensor.h"

/* The layers of a net, checked against each other, with their parameters: all layers of a net_spec, or those of a net_part's ranges. Of the
 * other members of net_part only the rules are used. */
struct graph {
	struct layer *layers; /* of all ranges, one range behind the other */
	size_t count;
	struct graph_range {
		size_t begin, count; /* in `layers`; inputs of layers count from `begin` */
		struct layer_shape input;
	} range[NET_RANGES];
	size_t ranges;
	struct tensor_table tensors;
};

/* ERR_INVALID, ERR_LIMIT or ERR_UNSUPPORTED (the back end lacks a layer, a part needs more than the one tensor before it) with the
 * layer's name in why; *g is then empty. */
ERR_MUST_USE enum err graph_build(
    struct graph *g, const struct net_part *part, const struct backend *backend, struct why *why);
void graph_deinit(struct graph *g);
/* The layer whose weight layer l, with spec.tied above 0, uses. */
const struct layer *graph_lender(const struct graph *g, const struct layer *l);

#endif
