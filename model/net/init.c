#include "init.h"

#include <math.h>
#include <stdbool.h>

#include "layer.h"
#include "net_spec.h"

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

void
init_begin(struct init *d, const struct layer_spec *layer, const struct layer_param *p,
    uint64_t seed, uint64_t stream)
{
	bool drawn =
	    p->start == START_WEIGHT || (p->start == START_BIAS && layer->init == INIT_TORCH);

	*d = (struct init){.how = INIT_FILLED, .value = p->start == START_ONE ? 1 : 0};
	prng_seed2(&d->from, seed, stream);
	if (p->start == START_TORCH || (drawn && layer->init != INIT_NORMAL)) {
		enum layer_init how = drawn ? layer->init : INIT_TORCH;
		d->how = INIT_UNIFORM;
		d->value = (float)bound(how, p->fan_in, p->fan_out);
	} else if (drawn) {
		d->how = INIT_NORMALLY;
		d->value = layer->deviation;
	}
}

/* The sum of twelve uniform numbers has a variance of 1. */
static float
normal(struct prng *r)
{
	float sum = -6;

	for (int k = 0; k < 12; k++)
		sum += prng_float(r);
	return sum;
}

void
init_next(struct init *d, float *w, size_t n)
{
	const float value = d->value;
	struct prng r = d->from; /* kept in registers: w may not point at it */

	switch (d->how) {
	case INIT_UNIFORM:
		for (size_t i = 0; i < n; i++)
			w[i] = value * (2 * prng_float(&r) - 1);
		break;
	case INIT_NORMALLY:
		for (size_t i = 0; i < n; i++)
			w[i] = value * normal(&r);
		break;
	case INIT_FILLED:
		for (size_t i = 0; i < n; i++)
			w[i] = value;
		break;
	}
	d->from = r;
}
