#ifndef AFTER_H
#define AFTER_H
#include "schedule_state.h"
#include "states.h"

/* What follows a round that has ended: does the next one begin, and does the job go on? */

/* What a job's "stop" bounds, but for its target. */
enum after_limit {
	AFTER_NO_LIMIT,
	AFTER_ROUNDS, /* as many as it may have, those that failed among them */
	AFTER_REPORTS, /* in its models, those that a guard went back behind among them */
	AFTER_SECONDS, /* since the submission, pauses among them */
};
/* Where a job has come to with a round that has closed. */
struct after_progress {
	uint64_t round; /* its number */
	uint64_t reports; /* with those of this round */
	double seconds; /* until it closed */
};
/* The first limit that is reached. */
enum after_limit after_reached(const struct stop_spec *stop, const struct after_progress *p);

struct after_round {
	enum after_limit limit; /* that it has reached */
	unsigned actions; /* what the machine answers to its end */
	bool committed; /* with a model of its own */
	bool has_evaluators; /* as many as the quorum can measure that model, as far as is known */
	bool evaluated;
	double loss, accuracy,
	    own; /* of the model, own by the monitor's own metric; not finite: never a target that was reached */
	const struct schedule_turn *turn;
};

struct after {
	bool begin_next;
	bool begin_evaluation; /* of the model that the round made: nobody has measured it yet */
	enum job_state job_state; /* JOB_UNKNOWN: as it is */
	char job_reason[128]; /* why it changes; of an evaluation that begins: why it will */
};

/* A job is done when its target or a limit is reached (that of reports not by a round that failed), even where its guard or failed rounds would pause it. One that its guard
 * stops is stopped, unless it has reached its target. Where devices evaluate, a job that is done has its last model evaluated first, if
 * anybody can; if not, its reason says so. */
void after_decide(struct after *out, const struct job_spec *spec, const struct after_round *r);

/* An evaluation that has ended. */
struct after_evaluation {
	const char *
	    reason; /* why it was made, as after_decide said it; "" of a job that does nothing else */
	uint32_t reports, quorum;
	bool known; /* there is a figure */
};
/* The job is done, and its reason says whether its model has its figure. why: of the evaluation, "" if it has. */
void after_evaluated(struct after *out, const struct after_evaluation *v, char why[128]);

#endif
