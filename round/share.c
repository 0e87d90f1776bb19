#include "share.h"

#include <math.h>

/* Of a job none of whose tasks has ended: enough to move it behind its peers. */
#define FIRST_SECONDS 1.0
/* How much the last task tells of the next one. */
#define WEIGHT 0.1

struct share_use
share_none(void)
{
	return (struct share_use){.level = -INFINITY};
}

static double
half_lives(uint64_t ms)
{
	return (double)ms / SHARE_HALF_LIFE_MS;
}

void
share_charge(struct share_use *u, double seconds, uint64_t now_ms)
{
	if (!isfinite(seconds) || !(fabs(seconds) > 0))
		return;
	const double shift = half_lives(now_ms);
	const double have = share_seconds(u, now_ms);

	u->level = have + seconds > 0 ? log2(have + seconds) + shift : -INFINITY;
	u->charged_ms = now_ms;
}

double
share_seconds(const struct share_use *u, uint64_t now_ms)
{
	return exp2(u->level - half_lives(now_ms));
}

double
share_key(const struct share_use *u, uint32_t share)
{
	return u->level - log2((double)share);
}

void
share_raise(struct share_use *u, uint32_t share, double key)
{
	const double level = key + log2((double)share);

	if (level > u->level)
		u->level = level;
}

double
share_begin(struct share_use *u, uint64_t now_ms)
{
	const double charged = u->task_seconds > 0 ? u->task_seconds : FIRST_SECONDS;

	share_charge(u, charged, now_ms);
	return charged;
}

void
share_end(struct share_use *u, double charged, double seconds, uint64_t now_ms)
{
	share_charge(u, seconds - charged, now_ms);
	u->task_seconds += (u->task_seconds > 0 ? WEIGHT : 1) * (seconds - u->task_seconds);
}
