#include <time.h>

#include "clock.h"

/* A file of its own: a test that has a clock of its own need not have this one. */
uint64_t
clock_elapsed_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}
