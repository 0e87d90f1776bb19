#ifndef SKEW_H
#define SKEW_H
#include <stdbool.h>
#include <stdint.h>

/*
 * What a session knows of the time. The coordinator's clock is told by the Date of its answers and carried on by this device's
 * monotonic clock, so that a wall clock that jumps here changes nothing in it. Both clocks are watched for steps that no clock
 * makes which goes evenly: then what was put off for long is to be looked at again. Monotonic is here what counts while the machine sleeps,
 * too.
 */
#define SKEW_STEP_S 300.0

struct skew {
	bool known; /* an answer has told the coordinator's clock */
	double date,
	    date_at; /* what it showed at that moment of clock_elapsed_ms, both in seconds */
	bool watched;
	double wall, steady; /* our clocks when last looked at */
};

/* Looks at this device's clocks: by how many seconds the wall clock stepped since the last look; 0 if by no more than SKEW_STEP_S. */
double skew_look(struct skew *k);
/* The coordinator's clock showed `date`, Unix seconds, at the second `at` of clock_elapsed_ms. Returns by how many seconds it stepped against what it
 * was known to be; 0 likewise, and for the first one. */
double skew_hear(struct skew *k, int64_t date, double at);
/* Unix seconds by the coordinator's clock; by this device's until an answer came. */
int64_t skew_now(const struct skew *k);
/* The coordinator's clock minus this device's, seconds; 0 if not known. */
int64_t skew_offset(const struct skew *k);

#endif
