#include "scale.h"

#include <math.h>

#include "job.h"

struct scale
scale_start(void)
{
	return (struct scale){.used = 1, .from = 1, .to = 1};
}

static double
target(const struct scale_spec *spec, uint64_t reports)
{
	double share = (double)reports / (double)spec->reports;

	return spec->by == SCALE_SQRT ? sqrt(share) : share;
}

double
scale_next(struct scale *s, const struct scale_spec *spec, uint64_t reports)
{
	if (spec->by == SCALE_NONE)
		return 1;
	double to = target(spec, reports);
	if (to != s->to)
		*s = (struct scale){.used = s->used, .from = s->used, .to = to};
	s->step++;
	s->used = s->step >= spec->warmup
	    ? to
	    : s->from + (to - s->from) * ((double)s->step / (double)spec->warmup);
	return s->used;
}
