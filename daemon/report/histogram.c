#include "histogram.h"

#include <math.h>

#include "clock.h"

static const double fine[HISTOGRAM_BOUNDS] = {1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4,
    1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 1e-1, 2e-1, 5e-1, 1, 2, 5, 10, 20, 50, 100};

size_t
histogram_bounds(enum histogram_scale scale)
{
	static const size_t counts[HISTOGRAM_SCALES] = {
	    [HISTOGRAM_FINE] = HISTOGRAM_BOUNDS,
	    [HISTOGRAM_LONG] = 18,
	    [HISTOGRAM_ROUNDS] = 11,
	};

	return counts[scale];
}

double
histogram_bound(enum histogram_scale scale, size_t i)
{
	if (i >= histogram_bounds(scale))
		return INFINITY;
	switch (scale) {
	case HISTOGRAM_LONG:
		return ldexp(0.1, (int)i);
	case HISTOGRAM_ROUNDS:
		return i == 0 ? 0 : ldexp(1, (int)i - 1);
	default:
		return fine[i];
	}
}

void
histogram_add(struct histogram *h, double value)
{
	const size_t last = histogram_bounds(h->scale);
	size_t i = 0;

	while (i < last && value > histogram_bound(h->scale, i))
		i++;
	h->buckets[i]++;
	h->count++;
	h->sum += value;
}

double
histogram_now(void)
{
	return clock_seconds();
}
