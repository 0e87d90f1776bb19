#ifndef BACKOFF_H
#define BACKOFF_H
#include <stdbool.h>

#include "prng.h"

/*
 * Waiting before another try: exponential growth with full jitter (uniform between zero and the limit), so that a
 * fleet that lost its coordinator does not come back in one wave. The owner gives a seed, so that tests get the same delays again.
 */
#define BACKOFF_BASE_S 0.5
#define BACKOFF_CAP_S 60.0
/* For builds with faults (fault.h) whose clock does not run faster: a test that kills processes hundreds of times cannot wait long. */
#define BACKOFF_HASTY_BASE_S 0.02
#define BACKOFF_HASTY_CAP_S 0.3

struct backoff {
	struct prng rng;
	unsigned attempt; /* failures in a row */
};

void backoff_init(struct backoff *b, uint64_t seed);
void backoff_reset(struct backoff *b);
/* Upper limit of the delay after `attempt` earlier failures. */
double backoff_limit(unsigned attempt);
/* Seconds to wait after one more failure. */
double backoff_next(struct backoff *b);
/* Seconds to wait when the coordinator said `retry_after`: at least so long, up to a tenth (at most 5 s) more. */
double backoff_after(struct backoff *b, double retry_after);
/* Sleeps; false if `cancel` (may be NULL) became true. `cancel` is called several times a second and at once after a
 * signal. */
bool backoff_sleep(double seconds, bool (*cancel)(void *context), void *context);
/* Seconds of the monotonic clock. */
double backoff_now(void);

#endif
