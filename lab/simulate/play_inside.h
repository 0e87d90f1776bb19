#ifndef PLAY_INSIDE_H
#define PLAY_INSIDE_H
#include "crowd.h"
#include "heap.h"
#include "late.h"
#include "play.h"

/* For the files of play_*.c. */

/* A task that a device has, or whose delta waits for the end of its round. */
struct simulate_task {
	struct fleet_task work;
	struct simulate_model *base; /* held */
	uint64_t worked_us; /* time that the device works on the task in all */
	uint64_t paced_us; /* time from the task to the first byte of its delta */
	uint64_t given_us, arrives_us;
	bool computed, accepted;
	bool fails; /* the device will give the task up */
	size_t place; /* in simulate_play.tasks */
};

struct simulate_play {
	const struct simulate_options *o;
	const struct job_spec *job;
	struct fleet_setup setup;
	struct simulate_coordinator coordinator;
	struct simulate_crowd crowd;
	struct simulate_heap heap;
	struct round round;
	struct prng rng; /* draws which device asks first */
	struct simulate_task **tasks; /* all tasks that are not over */
	size_t task_count, task_room;
	struct fleet_task **accepted; /* of the open round */
	size_t accepted_count, accepted_room;
	uint64_t us; /* the present time */
	uint64_t progress_us; /* when a delta was last accepted, or a round began */
	uint64_t number; /* of the open round */
	uint64_t reports; /* deltas in the models so far */
	/* For a job that takes late deltas: the rounds whose tasks may still be answered, the newest first. */
	struct late_point *points;
	size_t point_count;
	uint64_t chain; /* the first round since which each base is reached by differences */
	/* Bytes of a delta's payload; of a difference between two models, 0: there are none. */
	uint64_t payload, step_bytes;
	unsigned pending; /* set of enum round_action that are still to be done */
	bool agreed; /* attackers know the deltas of a whole round, so these are kept */
	bool wake; /* a device may ask for a task now */
	size_t
	    *held; /* devices that wait while their places are OUT: their agents let the job rest */
	size_t held_count, held_room;
	bool ask_held; /* the devices in held may ask now */
	bool hour; /* the next SIMULATE_HOUR is in the heap */
	bool evaluating; /* the open round measures the last model */
	bool ended;
	struct after after; /* state after the last round, for the evaluation */
	struct simulate_line line; /* of the open round */
	struct simulate_result *out;
};

/* --- play.c */
/* Makes everything but the rounds; the caller has set p->o, job and out, and calls simulate_play_close in either case. */
ERR_MUST_USE enum err simulate_play_open(struct simulate_play *p, struct why *why);
/* Completes p->out at the end of the play. ERR_NOMEM. */
ERR_MUST_USE enum err simulate_play_books(struct simulate_play *p, struct why *why);
void simulate_play_close(struct simulate_play *p);

/* --- play_task.c */
/* Gives a device that waits a task of the open round, in which it has a place. */
ERR_MUST_USE enum err simulate_play_give(struct simulate_play *p, size_t device, struct why *why);
/* Computes the task's delta, and in parallel those of other tasks that will be needed soon. */
ERR_MUST_USE enum err simulate_play_compute(
    struct simulate_play *p, struct simulate_task *t, struct why *why);
/* Of a buffered job: the device's task, which was given at given_us, expires when its time is over. ERR_NOMEM. */
ERR_MUST_USE enum err simulate_play_watch(
    struct simulate_play *p, size_t device, uint64_t given_us);
void simulate_play_drop(struct simulate_play *p, struct simulate_task *t);
/* *out: the examples of the device that its amount of work is counted by. */
ERR_MUST_USE enum err simulate_play_examples(
    const struct simulate_play *p, size_t device, uint64_t *out, struct why *why);

/* --- play_round.c */
/* round_step with p->round: returns the actions, and adds those that are done later to p->pending. */
unsigned simulate_play_step(struct simulate_play *p, enum round_event event, uint32_t arg);
/* Begins the first round. */
void simulate_play_begin(struct simulate_play *p);
/* Does all actions in p->pending. */
ERR_MUST_USE enum err simulate_play_settle(struct simulate_play *p, struct why *why);
/* Counts a delta in a model that was so many rounds old. */
void simulate_play_stale(struct simulate_result *r, struct simulate_line *l, uint64_t age);
/* Ends the open round without a model, because its reports do not come. */
void simulate_play_abandon(struct simulate_play *p);
__attribute__((format(printf, 3, 4))) void simulate_play_end(
    struct simulate_play *p, enum simulate_end end, const char *format, ...);

#endif
