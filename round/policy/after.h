#ifndef AFTER_H
#define AFTER_H
#include "rate_control.h"
#include "states.h"

/* What follows a round that has ended: does the next one begin, and does the job go on? */

/* What a job's "stop" bounds, but for its target. */
enum after_limit {
	AFTER_NO_LIMIT,
	AFTER_ROUNDS, /* stop.rounds; failed rounds count */
	AFTER_REPORTS, /* stop.reports; reports in models that a guard gave up count */
	AFTER_SECONDS, /* stop.seconds since the submission; pauses count */
};
/* A job's progress when a round has closed. */
struct after_progress {
	uint64_t round; /* the round's number */
	uint64_t reports; /* in models so far, this round's included */
	double seconds; /* from the submission until the round closed */
};
/* The first limit that is reached, in the order of enum after_limit. */
enum after_limit after_reached(const struct stop_spec *stop, const struct after_progress *p);

struct after_round {
	enum after_limit limit; /* the limit that the job has reached */
	unsigned actions; /* the round_actions that round_step returned for the round's end */
	bool committed; /* with a model of its own */
	/* As many devices as the quorum can evaluate the round's model, as far as is known. */
	bool has_evaluators;
	bool evaluated;
	double loss, accuracy,
	    own; /* of the model, own by the monitor's own metric; not finite: never a target that was reached */
	const struct rate_control_turn *turn;
};

struct after {
	bool begin_next;
	/* Devices are to evaluate the model that the round made, which has no figures yet. */
	bool begin_evaluation;
	enum job_state job_state; /* the job's new state; JOB_UNKNOWN: no change */
	/* Why the state changes; with begin_evaluation: why it will change afterwards. */
	char job_reason[128];
};

/* A job is done when its target or a limit is reached (AFTER_REPORTS not by a failed round), even where its guard or failed rounds would
 * pause it. A job that its guard stops is stopped, unless the target is reached. Where devices evaluate, the last model is evaluated before
 * the job is done, if there are evaluators; if not, job_reason says so. */
void after_decide(struct after *out, const struct job_spec *spec, const struct after_round *r);

/* An evaluation that has ended. */
struct after_evaluation {
	/* Why it was made, the job_reason of after_decide; "" for a job that only evaluates. */
	const char *reason;
	uint32_t reports, quorum;
	bool known; /* the evaluation gave a figure */
};
/* Ends a job with its evaluation: out->job_state becomes JOB_DONE, job_reason says whether the model has a figure. why: why the evaluation
 * gave none; "" if it gave one. */
void after_evaluated(struct after *out, const struct after_evaluation *v, char why[128]);

#endif
