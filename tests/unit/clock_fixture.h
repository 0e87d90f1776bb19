#ifndef CLOCK_FIXTURE_H
#define CLOCK_FIXTURE_H
#include "clock.h"

/* Clocks of the test's own, which are linked in the place of base's: they stand where it has put them. Only for tests
 * whose other threads do not read them while they go on. */

static double wall = 1800000000; /* Unix seconds */
static double steady = 5000; /* the monotonic ones, seconds */

uint64_t
clock_ms(void)
{
	return (uint64_t)(steady * 1000);
}

double
clock_seconds(void)
{
	return steady;
}

uint64_t
clock_elapsed_ms(void)
{
	return clock_ms();
}

double
clock_wall(void)
{
	return wall;
}

int64_t
clock_unix(void)
{
	return (int64_t)wall;
}

/* Both go on. */
static inline void
pass(double seconds)
{
	wall += seconds;
	steady += seconds;
}

#endif
