#ifndef PLAY_INSIDE_H
#define PLAY_INSIDE_H
#include "crowd.h"
#include "heap.h"
#include "late.h"
#include "play.h"

/* For the files of play_*.c. */

/* A task that is out, or whose delta waits for its round's end. */
struct simulate_task {
	struct fleet_task work;
	struct simulate_model *base; /* held */
	uint64_t opening; /* of its round */
	uint64_t worked_us; /* by its end */
	uint64_t paced_us; /* until the first byte of its delta */
	uint64_t given_us, arrives_us;
	bool computed, accepted;
	bool fails; /* the device gives it up on the way */
	bool expired; /* its place is another's */
	size_t place; /* in play.tasks */
};

struct simulate_play {
	const struct simulate_options *o;
	const struct job_spec *job;
	struct fleet_shop shop;
	struct simulate_coordinator coordinator;
	struct simulate_crowd crowd;
	struct simulate_heap heap;
	struct round round;
	struct prng rng; /* who asks first */
	struct simulate_task **tasks; /* all of them */
	size_t task_count, task_room;
	struct fleet_task **accepted; /* of the open round */
	size_t accepted_count, accepted_room;
	uint64_t us; /* now */
	uint64_t progress_us; /* a delta was taken, or a round began */
	uint64_t number; /* of the open round */
	uint64_t reports; /* in the models so far */
	struct late_point *
	    points; /* of a job that takes late deltas: the rounds whose tasks may still be answered, the newest first */
	size_t point_count;
	uint64_t chain; /* the first round whose base follows from those before by differences */
	uint64_t payload,
	    step_bytes; /* of a delta; of a difference between models, 0: there are none */
	unsigned pending; /* of enum round_action: still to be done */
	bool agreed; /* attackers know the deltas of a whole round: they are kept */
	bool wake; /* somebody may ask who was not asked yet */
	bool hour; /* the next one is in the heap */
	bool evaluating; /* the open round measures the last model */
	bool ended;
	struct after after; /* of the last round: for the evaluation */
	struct simulate_line line; /* of the open round */
	struct simulate_result *out;
};

/* --- play.c */
/* Everything but the rounds: p has o, job and out. simulate_play_close in either case. */
ERR_MUST_USE enum err simulate_play_open(struct simulate_play *p, struct why *why);
/* What is known at the end. ERR_NOMEM. */
ERR_MUST_USE enum err simulate_play_books(struct simulate_play *p, struct why *why);
void simulate_play_close(struct simulate_play *p);

/* --- play_task.c */
/* A task of the open round for a device that waits. */
ERR_MUST_USE enum err simulate_play_give(struct simulate_play *p, size_t device, struct why *why);
/* The task's delta, and those of others that will soon be wanted, side by side. */
ERR_MUST_USE enum err simulate_play_compute(
    struct simulate_play *p, struct simulate_task *t, struct why *why);
void simulate_play_drop(struct simulate_play *p, struct simulate_task *t);
/* Examples of the device that count for its work. */
ERR_MUST_USE enum err simulate_play_examples(
    const struct simulate_play *p, size_t device, uint64_t *out, struct why *why);

/* --- play_round.c */
/* Tells the machine, and notes what it wants done. */
unsigned simulate_play_step(struct simulate_play *p, enum round_event event, uint32_t arg);
/* The first round. */
void simulate_play_begin(struct simulate_play *p);
/* What the machine wanted. */
ERR_MUST_USE enum err simulate_play_settle(struct simulate_play *p, struct why *why);
/* A delta that went into a model was so many rounds old. */
void simulate_play_stale(struct simulate_result *r, struct simulate_line *l, uint64_t age);
/* The round that is open does not get its reports. */
void simulate_play_abandon(struct simulate_play *p);
__attribute__((format(printf, 3, 4))) void simulate_play_end(
    struct simulate_play *p, enum simulate_end end, const char *format, ...);

#endif
