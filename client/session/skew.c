#include "skew.h"

#include <math.h>

#include "clock.h"

static double
elapsed(void)
{
	return (double)clock_elapsed_ms() / 1000;
}

static double
step(double seconds)
{
	return fabs(seconds) > SKEW_STEP_S ? seconds : 0;
}

double
skew_look(struct skew *k)
{
	const double wall = clock_wall(), steady = elapsed();
	const double moved = k->watched ? (wall - k->wall) - (steady - k->steady) : 0;

	k->watched = true;
	k->wall = wall;
	k->steady = steady;
	return step(moved);
}

static double
shown(const struct skew *k, double at)
{
	return k->date + (at - k->date_at);
}

double
skew_hear(struct skew *k, int64_t date, double at)
{
	const double moved = k->known ? (double)date - shown(k, at) : 0;

	k->known = true;
	k->date = (double)date;
	k->date_at = at;
	return step(moved);
}

int64_t
skew_now(const struct skew *k)
{
	return k->known ? (int64_t)floor(shown(k, elapsed())) : clock_unix();
}

int64_t
skew_offset(const struct skew *k)
{
	return k->known ? skew_now(k) - clock_unix() : 0;
}
