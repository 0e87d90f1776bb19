#ifndef NEAR_H
#define NEAR_H
#include <math.h>

static inline void
near(double got, double want)
{
	if (!(fabs(got - want) <= 1e-12 + 1e-12 * fabs(want)))
		fail_msg("%.17g is not %.17g", got, want);
}

#endif
