#include "pretend.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

bool
pretend_on(void)
{
#ifdef RIVULET_FAULTS
	return getenv("RIVULET_SITE_PRETEND") != NULL;
#else
	return false;
#endif
}

/* The factor of a rank is the last one if there are fewer. */
static double
seconds_of(unsigned rank)
{
	const char *at = getenv("RIVULET_SITE_PRETEND");
	char *end;
	double factor = 1;

	if (!at)
		return 0;
	double each = strtod(at, &end);

	for (unsigned r = 0; r <= rank; r++) {
		double next = strtod(end, &end);
		factor = next > 0 ? next : factor;
	}
	return each * factor;
}

void
pretend_pass(unsigned rank, size_t layers, bool back)
{
	double s = seconds_of(rank) * (double)layers * (back ? 2 : 1);
	struct timespec t = {(time_t)s, (long)((s - (double)(time_t)s) * 1e9)};

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}
