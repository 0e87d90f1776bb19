#ifndef INIT_H
#define INIT_H
#include <stddef.h>
#include <stdint.h>

#include "recipe.h"

/* Fills weights of a layer from stream `stream` of the seed: uniform in [-b, b), b as enum layer_init says. Only
 * sqrt and exactly rounded operations: the same bits on every machine. */
void init_weights(float *w, size_t n, enum layer_init how, size_t fan_in, size_t fan_out,
    uint64_t seed, uint64_t stream);

#endif
