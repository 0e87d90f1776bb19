#ifndef SKEW_H
#define SKEW_H
#include <stdbool.h>
#include <stdint.h>

/*
 * What a session knows of the time. The coordinator's clock is known from the Date of its answers and carried on by this device's
 * monotonic clock, so that a jump of this device's wall clock does not change it. Both clocks are watched for steps (jumps that no
 * steady clock makes); after a step, long pauses should be looked at again. The monotonic clock is clock_elapsed_ms, which goes on while
 * the machine is suspended.
 */
#define SKEW_STEP_S 300.0

struct skew {
	bool known; /* an answer has told the coordinator's clock */
	/* The coordinator's clock showed `date` at clock_elapsed_ms `date_at`, both in seconds. */
	double date, date_at;
	bool watched;
	/* This device's wall clock and clock_elapsed_ms at the last skew_look. */
	double wall, steady;
};

/* Returns by how many seconds this device's wall clock stepped since the last call; 0 if by no more than SKEW_STEP_S. */
double skew_look(struct skew *k);
/* Tells that the coordinator's clock showed `date`, Unix seconds, at the second `at` of clock_elapsed_ms. Returns by how many seconds that
 * clock stepped since the last call; 0 if by no more than SKEW_STEP_S, and for the first call. */
double skew_hear(struct skew *k, int64_t date, double at);
/* Unix seconds by the coordinator's clock; until an answer came, by this device's wall clock. */
int64_t skew_now(const struct skew *k);
/* The coordinator's clock minus this device's, seconds; 0 if not known. */
int64_t skew_offset(const struct skew *k);

#endif
