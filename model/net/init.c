#include "init.h"

#include <math.h>

#include "prng.h"

static double
bound(enum layer_init how, size_t fan_in, size_t fan_out)
{
	switch (how) {
	case INIT_HE:
		return sqrt(6.0 / (double)fan_in);
	case INIT_GLOROT:
		return sqrt(6.0 / ((double)fan_in + (double)fan_out));
	case INIT_TORCH:
		return 1.0 / sqrt((double)fan_in);
	case INIT_ZERO:
	case INIT_NORMAL:
		break;
	}
	return 0;
}

static void
draw_uniform(float *w, size_t n, float b, struct prng *r)
{
	for (size_t i = 0; i < n; i++)
		w[i] = b * (2 * prng_float(r) - 1);
}

/* The sum of twelve uniform numbers has a variance of 1. */
static void
draw_normal(float *w, size_t n, float deviation, struct prng *r)
{
	for (size_t i = 0; i < n; i++) {
		float sum = -6;
		for (int k = 0; k < 12; k++)
			sum += prng_float(r);
		w[i] = deviation * sum;
	}
}

void
init_param(float *w, const struct layer_spec *layer, const struct layer_param *p, uint64_t seed,
    uint64_t stream)
{
	bool drawn =
	    p->start == START_WEIGHT || (p->start == START_BIAS && layer->init == INIT_TORCH);
	struct prng r;

	prng_seed2(&r, seed, stream);
	if (p->start == START_TORCH)
		draw_uniform(w, p->count, (float)bound(INIT_TORCH, p->fan_in, p->fan_out), &r);
	else if (drawn && layer->init == INIT_NORMAL)
		draw_normal(w, p->count, layer->deviation, &r);
	else if (drawn)
		draw_uniform(w, p->count, (float)bound(layer->init, p->fan_in, p->fan_out), &r);
	else
		for (size_t i = 0; i < p->count; i++)
			w[i] = p->start == START_ONE ? 1 : 0;
}
