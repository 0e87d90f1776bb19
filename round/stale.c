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

bool
stale_scales(const struct staleness_spec *spec)
{
	return spec->divide == STALENESS_BY_COUNT;
}
