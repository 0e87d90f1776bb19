#ifndef JOB_FACTS_H
#define JOB_FACTS_H
#include "best.h"
#include "fold_cost.h"
#include "job.h"
#include "job_fold.h"
#include "job_invites.h"
#include "job_list.h"
#include "override.h"
#include "rate_control.h"
#include "round.h"
#include "row.h"
#include "speeds.h"
#include "stuck.h"
#include "tensor.h"

/* What is known of a job, to be read by whoever holds the lock; it changes by the calls of this room alone. */

/* A round's model that a program of a named evaluator measures: tasks/central.c keeps it. */
#define ENGINE_CENTRAL_GAVE_UP 16
struct engine_central {
	bool open; /* it waits for its figure */
	bool taken; /* a report is on its way to the disk, */
	bool reported; /* or has got there: no other is taken */
	uint64_t round, bytes; /* bytes: of its file */
	uint8_t model[32];
	uint64_t until_ms;
	/* Who is not asked again, as far as there is room: then the device lets the job rest. */
	uint8_t gave_up[ENGINE_CENTRAL_GAVE_UP][32];
	size_t gave_up_count;
	struct abort_cause cause; /* of the last of them */
};

/* Whether a job moves, and what that is made of: rounds/moves.c keeps it. */
struct job_stuck {
	struct stuck_watch watch;
	struct stuck_reopened reopened;
	struct stuck_reach reach; /* as it was at reach_ms; 0: nobody looked */
	uint64_t reach_ms;
	/* Who did not answer when the round was opened again, as far as there is room. */
	uint8_t silent[ENGINE_DEVICES_SHOWN][32];
	size_t silent_count;
	uint64_t silent_round;
};

/* What only the rounds of a job need. */
struct job_work {
	struct job_spec spec; /* immutable: of the document, */
	struct job_stamp stamp; /* with what was noted beside it */
	struct override_set overrides; /* of it, */
	struct job_terms terms; /* and what is in force with them: terms_take alone changes both */
	struct tensor_table table; /* immutable; roles are assigned */
	double
	    evaluation; /* multiply-adds of a batch of the coordinator's evaluation; 0: it makes none */
	struct fold_cost
	    cost; /* of a round of its goal; bytes with the net that measures its model */
	struct rate_control schedule; /* after the last round that ended */
	struct engine_differences differences;
	struct engine_central central;
	struct speeds speeds; /* of LOCAL_SIZED */
	struct job_stuck stuck;
	char unmeasured[ENGINE_UNMEASURED_MAX]; /* why its newest model has no figure; "" */
};

struct job_facts {
	uint8_t id[16];
	char hex[33];
	char name[RECIPE_NAME_MAX];
	uint8_t owner[32];
	int64_t priority; /* of the document: its place in the list */
	uint64_t serial; /* of the oldest the least */
	bool only_evaluates; /* it has no rounds but its evaluation */
	double created_at, ended_at; /* NaN: it is not over */
	enum job_state state;
	char reason[STORE_REASON_MAX];
	bool aside; /* what it needs could not be read: nothing of it is removed */
	/* Nobody finds it any more. It stays in the list while it is used or names a state. */
	bool gone;
	uint32_t place; /* device_status.h */
	struct engine_lack lack; /* what it waits for; it is paused for that alone */
	struct round round; /* rounds_step alone changes it */
	struct store_round row; /* of the open round */
	uint64_t model_bytes, parameters;
	uint8_t model[32]; /* the newest committed model */
	uint64_t rounds_committed;
	uint64_t reports; /* in its models; kept while there is a limit for them */
	struct store_metric metric;
	uint64_t metric_round;
	uint64_t measured; /* buffered, by devices: the last round whose base has a figure */
	struct monitor_spec monitor;
	struct keep_spec keep;
	struct best best;
	bool is_guarded;
	struct guard_view guard; /* without work: as it was at the end */
	uint64_t bytes_up, bytes_down;
	/* NULL once the job is over, nothing of it is folded any more, and its states are forgotten: jobs_shrink. */
	const struct job_work *work;
};
static inline const struct job_facts *
job_facts(const struct job *j)
{
	/* Its first member: this is read at every step of a walk over thousands of jobs. */
	return (const struct job_facts *)(const void *)j;
}

/* --- what the rooms above keep with a job. Lock held. */

/* Of rounds/. */
struct job_pace {
	unsigned folds; /* of its rounds, that the folder has */
	unsigned fold_failures; /* of the round at hand, in a row */
	uint64_t fold_retry_ms; /* when it is folded again; 0: it does not wait for that */
	uint64_t expiry_ms; /* the first of the tasks that are out expires; UINT64_MAX: none does */
	uint32_t loaded; /* deltas that the open round had when the coordinator started */
	uint32_t early; /* and those for the next one */
	uint32_t out; /* and tasks of a buffered job */
	enum err lack_fault; /* what the last look at it came to; ERR_OK: nobody has looked */
	unsigned lack_looks; /* in vain */
	uint64_t lack_ms; /* of the next look */
};
struct job_pace *job_pace(struct job *j);
struct round *job_round(struct job *j);
struct job_stuck *job_stuck(struct job *j); /* of a job with work */
/* Of tasks/. */
struct engine_refusal;
struct job_refusals {
	struct engine_refusal *items; /* sorted by device and kind */
	size_t count, room;
};
struct job_refusals *job_refusals(struct job *j);
struct engine_central *job_central(struct job *j); /* these two NULL without work */
struct speeds *job_speeds(struct job *j);
/* Of difference.c; likewise. */
struct engine_differences *job_differences(struct job *j);

/* What rounds/ keeps for all jobs. */
#define ENGINE_DOUBTS 16
struct engine_pace {
	bool started, stopping;
	bool looking; /* a worker looks after files */
	uint8_t doubts[ENGINE_DOUBTS][32]; /* models that devices say are damaged */
	size_t doubt_count;
	uint64_t look_ms; /* before that no round and no fold waits for the time */
	uint64_t stuck_ms; /* when to look again whether jobs move */
	uint64_t stuck[STUCK_KINDS]; /* jobs, by what is said of them */
	uint64_t tasks_out; /* of all running jobs, at the last look */
	size_t reach_wanted; /* jobs of which the last look wanted to know whom they reach */
	enum err (*fold)(void *folder, const struct engine_fold *f); /* who folds */
	void *folder;
};
struct engine_pace *jobs_pace(struct engine *g);

#endif
