#include "clock.h"

#include <time.h>

#ifdef RIVULET_FAULTS
#include <stdlib.h>

#include "num.h"

#define SPEED_MAX 1000

static uint64_t
speed(void)
{
	static _Thread_local uint64_t known;
	const char *text = known ? NULL : getenv("RIVULET_CLOCK_SPEED");

	if (text && !num_u64(text, SPEED_MAX, &known))
		known = 1;
	known += known == 0;
	return known;
}
#else
static uint64_t
speed(void)
{
	return 1;
}
#endif

/* Nanoseconds times the speed wrap after 213 days of running at the largest speed. */
static uint64_t
monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return ((uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec) * speed();
}

uint64_t
clock_ms(void)
{
	return monotonic_ns() / 1000000;
}

double
clock_seconds(void)
{
	return (double)monotonic_ns() / 1e9;
}

double
clock_wall(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + (double)(t.tv_nsec / 1000000) / 1000.0;
}

int64_t
clock_unix(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec;
}
