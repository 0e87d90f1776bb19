#ifndef PLACES_H
#define PLACES_H
#include "net_spec.h"

/*
 * How many values of a channel one example has where a layer reads it. A batch norm with one alone has no variance over a pass of a single
 * example: PyTorch refuses to train so. The shapes are those of model/layers, of which only what tells the number is followed.
 */

/* The first layer of type batchnorm that has one value for each channel of an example; NULL: there is none. A network that model/ refuses
 * may have any answer. */
const struct layer_spec *net_places_single(const struct net_spec *s);

#endif
