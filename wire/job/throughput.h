#ifndef THROUGHPUT_H
#define THROUGHPUT_H
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "recipe.h"

/*
 * Work by measured speed: how fast a device was with its last tasks of a job, and how many steps its next one gets. The median of a few
 * forgives a device that slept once. Coordinator and simulator size tasks with this.
 */
#define THROUGHPUT_RECENT 5

/* All zero: nothing is known. */
struct throughput {
	double recent[THROUGHPUT_RECENT]; /* steps a second */
	uint64_t count; /* noted ever; the newest is at (count - 1) % THROUGHPUT_RECENT */
};

/* The speeds of all devices of a job that were measured. All zero: of none. */
struct throughput_fleet {
	double *sorted; /* their medians */
	size_t count, room;
	uint64_t round; /* of whose beginning */
	double speed; /* this was the median */
};

/* A task of so many steps took so long, from being handed out until its delta began to come. Nothing is noted of 0 steps, and less
 * than a millisecond counts as one. */
void throughput_note(struct throughput *s, uint64_t steps, double seconds);
/* Of an even number the mean of the middle two; 0: nothing is known. */
double throughput_median(const struct throughput *s);

void throughput_fleet_deinit(struct throughput_fleet *f);
/* throughput_note of one of the fleet's devices. ERR_NOMEM: nothing was noted. */
ERR_MUST_USE enum err throughput_fleet_note(
    struct throughput_fleet *f, struct throughput *s, uint64_t steps, double seconds);
/* To read a fleet: each device with all that is known of it, and once all are there, throughput_fleet_order, before anything else.
 * ERR_NOMEM. */
ERR_MUST_USE enum err throughput_fleet_add(struct throughput_fleet *f, const struct throughput *s);
void throughput_fleet_order(struct throughput_fleet *f);
/* The device is no longer one of the fleet's. */
void throughput_fleet_drop(struct throughput_fleet *f, const struct throughput *s);
/* The median of its devices when this round was first asked about, so that all who are new in a round are given as much; 0: none was
 * measured. Of a round before the last one asked about it is that one's. */
double throughput_fleet_speed(struct throughput_fleet *f, uint64_t round);

/* Steps of the device's task of this round in a job of LOCAL_SIZED: target_s x speed, rounded down, within min_steps and max_steps. Who
 * was not measured yet is taken to be as fast as the fleet (throughput_fleet_speed); min_steps while that is 0. */
uint64_t throughput_steps(struct throughput_fleet *f, uint64_t round,
    const struct local_spec *local, const struct throughput *s);

#endif
