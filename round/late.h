#ifndef LATE_H
#define LATE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job.h"

/* Deltas that are folded in another round than their task's: what they count, which are of no more use, and whose turn it is. Pure. */

/*
 * What a delta counts that was trained on an older base: s(t), t being the rounds between its task's and the one it is folded in.
 * FedBuff's (Nguyen et al. 2022) is 1 / sqrt(1 + t), which is 1 for a fresh one. Never above 1, so that no delta counts more than it
 * would have in its own round. Only sums, quotients and square roots: the same bits everywhere.
 */
double late_weight(const struct staleness_spec *spec, uint64_t t);
/* The same as a factor of the delta, so that the divisor stays as it is, or of the delta's weight: *scale, 1 in the second case, and
 * *weight, which is multiplied. */
void late_apply(const struct staleness_spec *spec, uint64_t t, double *weight, double *scale);

/*
 * Which of a job's last rounds lie on the way to the model that the open round starts from: where a guard went back, what was made
 * after the model that it went back to does not. A delta of such a round's base leads away from a model that was given up.
 */
struct late_point {
	uint64_t round;
	uint8_t base[32]; /* what its tasks start from */
	uint8_t model
	    [32]; /* what it came to: the base again, if it failed; not looked at of the open round */
	bool live; /* its base lies on the way */
};

/* Sets `live` of all. points[0] is the open round, the others those before it without a gap, the newest first. */
void late_trace(struct late_point *points, size_t count);

/*
 * How often one device may be in the buffers of a job whose rule bears hostile ones. Such a rule counts liars among the deltas of a
 * round; where rounds take what comes first, whoever is fast is in every one of them, and a few fast liars are more of each buffer than
 * of the fleet. So a device rests after a delta: of n devices that ask, each has a turn every n / goal buffers if all are alike, and
 * none more than three times as often. A fleet of less than three times the goal needs everybody, and rests nobody.
 */

/* Buffers that a device waits after the one that took its delta. */
uint64_t late_rest(uint64_t devices, uint32_t goal);

#endif
