#include "backoff.h"

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

double
backoff_limit(unsigned attempt)
{
	double limit = BACKOFF_BASE_S;

	while (attempt-- > 0 && limit < BACKOFF_CAP_S)
		limit *= 2;
	return limit < BACKOFF_CAP_S ? limit : BACKOFF_CAP_S;
}

double
backoff_next(struct backoff *b)
{
	double limit = backoff_limit(b->attempt);

	if (limit < BACKOFF_CAP_S)
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
