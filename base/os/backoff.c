#include "backoff.h"

#include <stdlib.h>
#include <time.h>

#include "clock.h"

#define SLICE_S 0.2
#define JITTER_MAX_S 5.0

void
backoff_init(struct backoff *b, uint64_t seed)
{
	prng_seed(&b->rng, seed);
	b->attempt = 0;
}

void
backoff_reset(struct backoff *b)
{
	b->attempt = 0;
}

#ifdef RIVULET_FAULTS
static bool
is_hasty(void)
{
	static _Thread_local int known;

	if (!known)
		known = getenv("RIVULET_CLOCK_SPEED") ? 1 : 2;
	return known == 2;
}
#else
static bool
is_hasty(void)
{
	return false;
}
#endif

static double
cap(void)
{
	return is_hasty() ? BACKOFF_HASTY_CAP_S : BACKOFF_CAP_S;
}

double
backoff_limit(unsigned attempt)
{
	double limit = is_hasty() ? BACKOFF_HASTY_BASE_S : BACKOFF_BASE_S;

	while (attempt-- > 0 && limit < cap())
		limit *= 2;
	return limit < cap() ? limit : cap();
}

double
backoff_next(struct backoff *b)
{
	double limit = backoff_limit(b->attempt);

	if (limit < cap())
		b->attempt++;
	return limit * prng_double(&b->rng);
}

double
backoff_after(struct backoff *b, double retry_after)
{
	double spread = retry_after * 0.1;

	if (!(retry_after > 0))
		return 0;
	if (spread > JITTER_MAX_S)
		spread = JITTER_MAX_S;
	return retry_after + spread * prng_double(&b->rng);
}

double
backoff_now(void)
{
	return clock_seconds();
}

bool
backoff_sleep(double seconds, bool (*cancel)(void *context), void *context)
{
	double until = backoff_now() + seconds;

	for (;;) {
		if (cancel && cancel(context))
			return false;
		double left = until - backoff_now();
		if (!(left > 0))
			return true;
		if (left > SLICE_S)
			left = SLICE_S;
		struct timespec t = {.tv_sec = 0, .tv_nsec = (long)(left * 1e9)};
		nanosleep(&t, NULL);
	}
}
