#ifndef INIT_H
#define INIT_H
#include "prng.h"

struct layer_param;
struct layer_spec;

/*
 * Draws the first values of a parameter from one stream of a seed, in calls of any length: the same bits on every machine. net_spec.h
 * defines the layers' words for the distribution (enum layer_init).
 */
struct init {
	struct prng from;
	enum { INIT_FILLED, INIT_UNIFORM, INIT_NORMALLY } how;
	/* INIT_FILLED: every value; INIT_UNIFORM: the bound; INIT_NORMALLY: the deviation. */
	float value;
};

void init_begin(struct init *d, const struct layer_spec *layer, const struct layer_param *p,
    uint64_t seed, uint64_t stream);
/* Writes the next n values. */
void init_next(struct init *d, float *w, size_t n);

#endif
