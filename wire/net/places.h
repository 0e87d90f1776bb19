#ifndef PLACES_H
#define PLACES_H
#include "net_spec.h"

/*
 * How many values of each channel one example has at a layer's input. A batch norm that reads one value of each channel has no variance in
 * a batch of one example, and PyTorch refuses to train on such a batch. Shapes are computed as in model/layers, as far as the number needs.
 */

/* The first batchnorm layer that reads one value of each channel of an example; NULL: there is none. Any answer for a network that model/
 * refuses. */
const struct layer_spec *net_places_single(const struct net_spec *s);

#endif
