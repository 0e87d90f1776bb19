#ifndef PLAY_H
#define PLAY_H
#include "after.h"
#include "coordinator.h"
#include "round.h"

/*
 * A job played on a simulated fleet: the machine of rounds with a clock of its own, devices whose times follow from their profiles, and
 * models that are really trained. The same job, fleet and seed play the same, whatever the number of threads.
 */

/* A round that has ended, with what happened since the one before. */
struct simulate_line {
	struct simulate_round round;
	bool abandoned; /* it never got its reports */
	bool evaluation; /* of the last model, by devices */
	uint64_t began_us, ended_us;
	uint32_t invited, aborted, reopened; /* as in struct round_close */
	uint64_t refused, late; /* uploads that were not taken; that came after their round */
	uint64_t bytes_up, bytes_down;
	uint64_t device_us, wasted_us; /* that devices worked; for nothing that is in a model */
	uint64_t stale_sum, stale_max; /* ages of its deltas, in rounds */
	const char *word; /* of the first refused upload; NULL: none */
};

struct simulate_options {
	struct simulate_setup setup;
	const struct fleet *fleet;
	const struct settings_data *data; /* what devices train on; NULL: they train nothing */
	unsigned jobs; /* devices whose trainer is a program that run at a time */
	uint64_t rounds; /* ends after so many; 0: when the job does */
	uint64_t seed; /* of what the fleet does */
	/* Told of every round as it ends. */
	void (*line)(void *context, const struct simulate_line *line);
	void *context;
	/* Asked now and then: true ends the play. NULL: never. */
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
	bool reached; /* the job's target; at: */
	uint64_t reached_us, reached_round;
	double best_accuracy, best_loss; /* NaN: never known */
	double last_accuracy, last_loss;
	uint64_t *
	    staleness; /* deltas by how many models were made between their base and the round that folded them */
	size_t staleness_count;
	uint32_t *folded; /* of each device */
	struct why first; /* why a device gave up; "" */
	uint8_t model[32]; /* the last one */
};
/* Nothing is known yet. */
void simulate_result_init(struct simulate_result *r);
void simulate_result_deinit(struct simulate_result *r);

/* Plays until the end. *out is to be deinited in either case; options->setup.scratch is the slots'. save: where the last model goes; NULL:
 * nowhere. Blocks; starts threads and, with a trainer that is a program, processes. */
ERR_MUST_USE enum err simulate_play(struct simulate_result *out,
    const struct simulate_options *options, const char *save, struct why *why);

#endif
