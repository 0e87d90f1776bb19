#ifndef PLAY_H
#define PLAY_H
#include "after.h"
#include "coordinator.h"
#include "round.h"

/*
 * A job played on a simulated fleet: the state machine of rounds (round.h) with a simulated clock, devices whose times follow from their
 * profiles, and models that are really trained. The same job, fleet and seed give the same results, whatever the number of threads.
 */

/* A round that has ended, with what happened since the round before ended. */
struct simulate_line {
	struct simulate_round round;
	bool abandoned; /* the round never got its reports */
	bool evaluation; /* not a round, but the evaluation of the last model by devices */
	uint64_t began_us, ended_us;
	uint32_t invited, aborted, reopened; /* as in struct round_close */
	uint64_t refused, late; /* uploads that were refused; that came after their round */
	uint64_t bytes_up, bytes_down;
	uint64_t device_us, wasted_us; /* time that devices worked; part that is in no model */
	uint64_t stale_sum, stale_max; /* staleness of the round's deltas, in rounds */
	const char *word; /* error word of the first refused upload; NULL: none */
};

struct simulate_options {
	struct simulate_setup setup;
	const struct fleet *fleet;
	const struct settings_data *data; /* what devices train on; NULL: devices train nothing */
	unsigned jobs; /* trainer programs that run at the same time */
	uint64_t rounds; /* end after so many rounds; 0: when the job ends */
	uint64_t seed; /* of the fleet's random choices */
	/* Called for every round as it ends. */
	void (*line)(void *context, const struct simulate_line *line);
	void *context;
	/* Called now and then: true ends the play. NULL: never. */
	bool (*stop)(void *context);
};

enum simulate_end {
	SIMULATE_DONE, /* as the job's `stop` says */
	SIMULATE_STOPPED, /* by the job's guard */
	SIMULATE_PAUSED, /* by the guard, or failed rounds in a row */
	SIMULATE_STUCK, /* no report came for many deadlines */
	SIMULATE_LIMIT, /* options.rounds */
	SIMULATE_BROKEN_OFF, /* options.stop */
};

/* The whole play, once it is over. */
struct simulate_result {
	enum simulate_end end;
	char reason[256];
	uint64_t us;
	uint64_t rounds, failed, reopened, reports, refused, late, aborted;
	uint64_t bytes_up, bytes_down, device_us, wasted_us;
	bool reached; /* the job's target was reached, at reached_us in reached_round */
	uint64_t reached_us, reached_round;
	double best_accuracy, best_loss; /* NaN: never known */
	double last_accuracy, last_loss;
	/* [n]: deltas with n models between their base and the round that folded them. */
	uint64_t *staleness;
	size_t staleness_count;
	uint32_t *folded; /* deltas of each device that are in models */
	struct why first; /* why the first device that gave up did; "": none */
	uint8_t model[32]; /* id of the last model */
};
/* An empty result. */
void simulate_result_init(struct simulate_result *r);
void simulate_result_deinit(struct simulate_result *r);

/* Plays until the end. The caller calls simulate_result_deinit in either case; options->setup.scratch is not used (the slots' directory
 * is). save: file for the last model; NULL: none. Blocks; starts threads and, with a trainer that is a program, processes. */
ERR_MUST_USE enum err simulate_play(struct simulate_result *out,
    const struct simulate_options *options, const char *save, struct why *why);

#endif
