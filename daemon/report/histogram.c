#include "histogram.h"

#include <math.h>

#include "clock.h"

static const double bounds[HISTOGRAM_BOUNDS] = {1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4,
    5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 1e-1, 2e-1, 5e-1, 1, 2, 5, 10, 20, 50, 100};

void
histogram_add(struct histogram *h, double seconds)
{
	size_t i = 0;

	while (i < HISTOGRAM_BOUNDS && seconds > bounds[i])
		i++;
	h->buckets[i]++;
	h->count++;
	h->sum_seconds += seconds;
}

double
histogram_now(void)
{
	return clock_seconds();
}

double
histogram_bound(size_t i)
{
	return i < HISTOGRAM_BOUNDS ? bounds[i] : INFINITY;
}
