#ifndef CUTS_H
#define CUTS_H
#include "net_spec.h"

/*
 * Where a network may be cut in two: in front of a layer, if the output of the layer before is all that crosses. The one place that decides
 * it, for parts of a network (graph.h), for blocks that are computed again (blocks.h) and for whoever divides a network. Pure.
 */
struct cuts_crossing {
	size_t reader; /* a layer behind the cut */
	int from; /* what it reads from before: a layer, or LAYER_INPUT */
};

/* Does anything else cross in front of layer `cut`? *first: the first such reader. Shared weights are not looked at (cuts_tied). */
bool cuts_crossed(const struct net_spec *spec, size_t cut, struct cuts_crossing *first);
/* Does a layer behind use a weight of before? */
bool cuts_tied(const struct net_spec *spec, size_t cut);

#endif
