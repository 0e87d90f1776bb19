#ifndef BRANCH_H
#define BRANCH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Which of a job's last rounds lie on the way to the model that the open round starts from: where a guard went back, what was made
 * after the model that it went back to does not. A delta of such a round's base leads away from a model that was given up.
 */
struct branch_point {
	uint64_t round;
	uint8_t base[32]; /* what its tasks start from */
	uint8_t model
	    [32]; /* what it came to: the base again, if it failed; not looked at of the open round */
	bool live; /* its base lies on the way */
};

/* Sets `live` of all. points[0] is the open round, the others those before it without a gap, the newest first. */
void branch_trace(struct branch_point *points, size_t count);

#endif
