#include "variate.h"

void
variate_change(float *out, const float *server, const float *delta, double rates, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = (float)-((double)server[i] + (double)delta[i] / rates);
}

void
variate_advance(float *own, const float *change, size_t n)
{
	for (size_t i = 0; i < n; i++)
		own[i] += change[i];
}
