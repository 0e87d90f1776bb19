#include "throughput.h"

#include <stdlib.h>
#include <string.h>

#define SECONDS_MIN 0.001

void
throughput_note(struct throughput *s, uint64_t steps, double seconds)
{
	if (steps == 0)
		return;
	if (!(seconds > SECONDS_MIN))
		seconds = SECONDS_MIN;
	s->recent[s->count++ % THROUGHPUT_RECENT] = (double)steps / seconds;
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double
throughput_median(const struct throughput *s)
{
	size_t n = s->count < THROUGHPUT_RECENT ? (size_t)s->count : THROUGHPUT_RECENT;
	double sorted[THROUGHPUT_RECENT];

	if (n == 0)
		return 0;
	memcpy(sorted, s->recent, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare);
	return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

uint64_t
throughput_steps(const struct local_spec *local, const struct throughput *s)
{
	double steps = local->target_s * throughput_median(s);

	/* Compared as it is: what is past max_steps need not fit an integer. */
	if (steps >= (double)local->max_steps)
		return local->max_steps;
	return steps > (double)local->min_steps ? (uint64_t)steps : local->min_steps;
}
