#include "late.h"

#include <math.h>
#include <string.h>

double
late_weight(const struct staleness_spec *spec, uint64_t t)
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
late_apply(const struct staleness_spec *spec, uint64_t t, double *weight, double *scale)
{
	const double s = late_weight(spec, t);
	const bool scales = spec->divide == STALENESS_BY_COUNT;

	*scale = scales ? s : 1;
	*weight *= scales ? 1 : s;
}

void
late_trace(struct late_point *points, size_t count)
{
	const uint8_t *way = count > 0 ? points[0].base : NULL;

	for (size_t i = 0; i < count; i++) {
		struct late_point *p = &points[i];
		if (i > 0 && memcmp(p->model, way, sizeof(p->model)) == 0)
			way = p->base;
		p->live = memcmp(p->base, way, sizeof(p->base)) == 0;
	}
}

#define OFTEN 3 /* times a fair share */

uint64_t
late_rest(uint64_t devices, uint32_t goal)
{
	const uint64_t turns = devices / ((uint64_t)OFTEN * goal);

	return turns > 0 ? turns - 1 : 0;
}
