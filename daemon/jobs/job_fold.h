#ifndef JOB_FOLD_H
#define JOB_FOLD_H
#include "abort_reason.h"
#include "after.h"
#include "best.h"
#include "fold_cost.h"
#include "job.h"
#include "job_list.h"
#include "override.h"
#include "rate_control.h"
#include "row.h"

struct invite;
struct tensor_table;

/* What a closing round is folded from and comes to, and what a job's guard makes of its rounds. */

/* What a closing round is folded from; a copy, except spec and table, which stay until rounds_fold_end. */
struct engine_fold {
	/* NULL: nothing is to be folded, but states of jobs that are over may be forgotten. */
	struct job *job;
	uint8_t job_id[16], owner[32];
	char job_hex[33];
	const struct job_spec *spec;
	const struct tensor_table *table;
	struct fold_cost cost; /* of memory and time */
	struct store_round row; /* base, optimizer_state of the base, opened_at, counts */
	uint64_t bytes_down;
	enum after_limit limit; /* that the job reaches with this round */
	struct job_stamp stamp; /* noted beside the document; spec has it */
	struct override_set overrides; /* in force as it closed */
	double evaluate_deadline_s; /* likewise, */
	uint32_t quorum; /* and of reports */
	/* Above 0: so many devices found the base to give none, and the round has failed. */
	uint32_t no_numbers;
	bool
	    lacks; /* fewer reports than the quorum: so it is with an evaluation whose deadline is over */
	struct rate_control schedule; /* before this round */
	struct best best; /* likewise */
	uint64_t measured; /* buffered, by devices: the last round whose base has a figure */
};

/* What comes of it. */
struct engine_outcome {
	struct store_round row; /* committed or failed */
	uint8_t measured_base[32]; /* the base of round row.measured, if that is not 0 */
	double fold_seconds; /* from the first delta to the model's metric */
	double evaluation_seconds; /* 0: nothing measured the model at its round's end */
	uint64_t model_bytes;
	uint64_t difference_bytes; /* of the file that leads from base to model; 0: there is none */
	struct after after; /* set by rounds_plan: if the next round begins, */
	struct store_round next; /* this is its row */
	struct rate_control schedule; /* set by rounds_plan: after this round, */
	struct rate_control_turn turn; /* and how it goes on */
	char unmeasured
	    [ENGINE_UNMEASURED_MAX]; /* why the model has no figure, where it was to have one */
	bool best_changed; /* set by rounds_plan: to */
	struct best best;
	uint64_t next_bytes; /* set by rounds_plan: of the next round's base */
};

/* --- guard and rate of a job over its rounds (guard.c). Lock held. */

/* Reads it from the rows of a job that is being loaded, whose newest row and metric are known. */
ERR_MUST_USE enum err jobs_guard_load(struct store_db *db, struct job *j);
/* A device gives up its task for this reason: does that tell the guard that the base gives no numbers? Lock held. */
bool jobs_guard_blames(const struct job *j, const struct invite *v, enum abort_reason reason);
/* Of a job with work. Lock held. */
struct guard_view jobs_guard_view(const struct job *j);
/* May the guard go back to it? Of a job that is over, only its best model is held. Lock held. */
bool jobs_guard_holds_model(const struct job *j, const uint8_t model[32]);
bool jobs_guard_holds_state(const struct job *j, const uint8_t state[32]);
/* Does the job still name states that are to be forgotten? Lock held. */
bool jobs_names_state(const struct job *j);
/* Of a job that is over: it names none any more. */
void jobs_drop_states(struct job *j);
/* A state that the job names, which it forgets with this; false: none. Lock held. */
bool jobs_take_state(struct job *j, uint8_t out[32]);

#endif
