#ifndef JOB_STRUCT_H
#define JOB_STRUCT_H
#include "best.h"
#include "choice.h"
#include "job_fold.h"
#include "job_list.h"
#include "job_needs.h"
#include "job_roster.h"
#include "late.h"
#include "lock.h"
#include "past_rows.h"
#include "report.h"
#include "round.h"
#include "share.h"
#include "stuck.h"
#include "tails.h"
#include "tempo.h"
#include "tensor.h"

/* A job, and all of them. Fields are under the engine's lock unless said otherwise. */

/* A device whose control variate counts in the coordinator's. */
struct engine_member {
	uint8_t device[32];
	uint64_t round; /* the last committed one that its delta is in */
};

/* A device that asks for a job's tasks. */
struct engine_regular {
	uint8_t device[32];
	uint64_t asked_ms;
	uint64_t folded; /* the last round that took a delta of it; 0: none */
};

/* A round's model that a program of a named evaluator measures (central.c). */
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

/* What only the rounds of a job need. */
struct engine_work {
	struct job_spec spec; /* immutable: of the document, */
	struct job_stamp stamp; /* with what was noted beside it */
	struct override_set overrides; /* of it, */
	struct job_terms terms; /* and what is in force with them: terms_take alone changes both */
	struct tensor_table table; /* immutable; roles are assigned */
	double
	    evaluation; /* multiply-adds of a batch of the coordinator's evaluation; 0: it makes none */
	struct fold_cost
	    cost; /* of a round of its goal; bytes with the net that measures its model */
	struct schedule_state schedule; /* after the last round that ended */
	struct engine_central central;
	/* Of a job that takes late deltas: the rounds whose tasks may still be answered, the newest first. */
	struct late_point *points;
	size_t point_count;
	/* Of a buffered job whose rule bears hostile devices: who asked lately, by device, and the rounds that each rests. */
	struct engine_regular *regulars;
	size_t regular_count, regular_room;
	uint64_t rest;
	/* The newest first; each from is the next one's to. */
	struct engine_difference differences[ENGINE_DIFFERENCES];
	size_t difference_count;
	struct tempo tempo; /* of LOCAL_SIZED */
	/* Whether it moves: the verdict, and what it is made of that nobody else keeps. */
	struct stuck_watch stuck;
	struct stuck_reopened reopened;
	struct stuck_reach reach; /* as it was at reach_ms; 0: nobody looked */
	uint64_t reach_ms;
	char unmeasured[ENGINE_UNMEASURED_MAX]; /* why its newest model has no figure; "" */
	/* Who did not answer when the round was opened again, as far as there is room. */
	uint8_t silent[ENGINE_DEVICES_SHOWN][32];
	size_t silent_count;
	uint64_t silent_round;
};

struct job {
	struct job *next; /* by priority, then age */
	struct job *chain; /* of its bucket */
	uint64_t serial; /* of the oldest the least */
	struct share_member member; /* of g->order, while it is not over */
	uint32_t place; /* standing.h */
	unsigned users; /* who has it without the lock */
	unsigned readers; /* who reads its work without the lock */
	unsigned folds; /* of its rounds, that the folder has */
	bool deleting; /* somebody does */
	/* Nobody finds it any more. It stays in the list while it is used or names a state. */
	bool gone;
	uint8_t id[16];
	char hex[33];
	char name[RECIPE_NAME_MAX];
	int64_t priority; /* of the document: its place in the list. member.priority is in force */
	bool only_evaluates; /* it has no rounds but its evaluation */
	/* NULL once the job is over, nothing of it is folded any more, and its states are forgotten: jobs_shrink. */
	struct engine_work *work;
	double created_at, ended_at; /* NaN: it is not over */
	uint8_t owner[32]; /* immutable */
	enum job_state state;
	char reason[STORE_REASON_MAX];
	bool aside; /* what it needs could not be read: nothing of it is removed */
	struct engine_lack lack; /* what it waits for; it is paused for that alone */
	enum err lack_fault; /* what the last look at it came to; ERR_OK: nobody has looked */
	unsigned lack_looks; /* in vain */
	uint64_t lack_ms; /* of the next look */
	struct round round; /* rounds_step alone changes it */
	bool asked; /* since the coordinator started, by a device that its rounds can use */
	uint8_t (*evaluators)[32]; /* of those, who evaluates: sorted, no more than the quorum */
	size_t evaluator_count, evaluator_room;
	uint32_t loaded; /* deltas that the open round had when the coordinator started */
	uint32_t early; /* and those for the next one */
	uint32_t out; /* and tasks of a buffered job */
	uint64_t expiry_ms; /* the first of the tasks that are out expires; UINT64_MAX: none does */
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
	struct invite *invites; /* sorted by device */
	size_t invite_count, invite_room;
	struct engine_refusal *refusals; /* sorted by device and kind */
	size_t refusal_count, refusal_room;
	struct choice_ticket *candidates; /* gathered askers, the first to be drawn first */
	size_t candidate_count, candidate_room;
	struct engine_member *members; /* of a job with control variates: those it has, by device */
	size_t member_count; /* at most spec.aggregate.variates, for which there is room */
	unsigned fold_failures; /* of the round at hand, in a row */
	uint64_t fold_retry_ms; /* when it is folded again; 0: it does not wait for that */
};

#define ENGINE_DOUBTS 16
struct engine {
	const struct services *services;
	uint8_t task_key[32];
	struct lock lock;
	struct job *jobs;
	/* The same by the first byte of their ids, which are hashes. */
	struct job *buckets[256];
	struct job *last; /* of them */
	struct share_order
	    order; /* of those that are not over: who is asked first for a device's work */
	uint64_t serial; /* of the newest */
	size_t job_count, gone_count;
	bool
	    dated; /* each job that is over has an end; one that ended while the clock was doubted has none */
	struct engine_report report; /* that of the lock apart */
	struct engine_reservation *reserved; /* the oldest first */
	struct tails tails; /* under a lock of its own */
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

#endif
