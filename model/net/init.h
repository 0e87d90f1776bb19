#ifndef INIT_H
#define INIT_H
#include "prng.h"

struct layer_param;
struct layer_spec;

/*
 * A parameter's first elements, from one stream of a seed, as many at a time as one likes: the same bits on every machine. What a layer's
 * words for it mean is in net_spec.h.
 */
struct init {
	struct prng from;
	enum { INIT_FILLED, INIT_UNIFORM, INIT_NORMALLY } how;
	float value; /* each of them, the bound, the deviation */
};

void init_begin(struct init *d, const struct layer_spec *layer, const struct layer_param *p,
    uint64_t seed, uint64_t stream);
/* The next n. */
void init_next(struct init *d, float *w, size_t n);

#endif
