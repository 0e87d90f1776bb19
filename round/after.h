#ifndef AFTER_H
#define AFTER_H
#include "schedule_state.h"
#include "states.h"

/* What follows a round that has ended: does the next one begin, and does the job go on? */

struct after_round {
	uint64_t round; /* its number */
	unsigned actions; /* what the machine answers to its end */
	bool evaluated;
	double loss, accuracy; /* of the model; not finite: never a target that was reached */
	const struct schedule_turn *turn;
};

struct after {
	bool begin_next;
	enum job_state job_state; /* JOB_UNKNOWN: as it is */
	char job_reason[128]; /* why it changes */
};

/* A job is done when its target or its last round is reached, even where its guard or failed rounds would pause it. One that its guard
 * stops is stopped, unless it has reached its target. */
void after_decide(struct after *out, const struct job_spec *spec, const struct after_round *r);

#endif
