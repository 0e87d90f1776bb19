#include "stale.h"

#include <math.h>

double
stale_weight(const struct staleness_spec *spec, uint64_t t)
{
	const double age = 1 + (double)t;

	switch (spec->weight) {
	case STALENESS_SQRT:
		return 1 / sqrt(age);
	case STALENESS_INVERSE:
		return 1 / age;
	case STALENESS_CONSTANT:
		break;
	}
	return 1;
}

void
stale_apply(const struct staleness_spec *spec, uint64_t t, double *weight, double *scale)
{
	const double s = stale_weight(spec, t);
	const bool scales = spec->divide == STALENESS_BY_COUNT;

	*scale = scales ? s : 1;
	*weight *= scales ? 1 : s;
}
