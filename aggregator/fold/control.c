#include "control.h"

#include "vec.h"

enum err
control_sum(const struct rule_input *changes, uint64_t first, size_t count, double *sum)
{
	float change[RULE_TILE];

	if (count > RULE_TILE)
		return ERR_INVALID;
	for (size_t i = 0; i < count; i++)
		sum[i] = 0;
	for (size_t d = 0; d < changes->deltas; d++) {
		enum err e = changes->read_tile(changes->context, d, first, count, change);
		if (e)
			return e;
		for (size_t i = 0; i < count; i++)
			sum[i] += (double)change[i];
	}
	return ERR_OK;
}

enum err
control_step(float *c, const double *sum, size_t count, uint32_t devices)
{
	for (size_t i = 0; i < count; i++)
		c[i] = (float)((double)c[i] + sum[i] / devices);
	return vec_all_finite(c, count) ? ERR_OK : ERR_NUMERIC;
}
