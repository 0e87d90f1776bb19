#ifndef INIT_H
#define INIT_H
#include "layer.h"

/* A parameter's first elements, from one stream of a seed: the same bits on every machine. What a layer's words for it mean is in
 * net_spec.h. */
void init_param(float *w, const struct layer_spec *layer, const struct layer_param *p,
    uint64_t seed, uint64_t stream);

#endif
