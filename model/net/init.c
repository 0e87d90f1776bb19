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
		break;
	}
	return 0;
}

void
init_weights(float *w, size_t n, enum layer_init how, size_t fan_in, size_t fan_out, uint64_t seed,
    uint64_t stream)
{
	float b = (float)bound(how, fan_in, fan_out);
	struct prng r;

	prng_seed2(&r, seed, stream);
	for (size_t i = 0; i < n; i++)
		w[i] = b * (2 * prng_float(&r) - 1);
}
