#ifndef THROUGHPUT_H
#define THROUGHPUT_H
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "recipe.h"

/*
 * Work by measured speed: how fast a device was with its last tasks of a job, and how many steps its next task gets. Speeds are medians of
 * a few tasks, so that one slow task (of a device that slept) does not count. Coordinator and simulator size tasks with these functions.
 */
#define THROUGHPUT_RECENT 5

/* All zero: nothing is known. */
struct throughput {
	double recent[THROUGHPUT_RECENT]; /* steps a second */
	uint64_t count; /* speeds noted ever; the newest is at (count - 1) % THROUGHPUT_RECENT */
};

/* The speeds of a job's measured devices. All zero: no device was measured. */
struct throughput_fleet {
	double *sorted; /* the median of each device, ascending */
	size_t count, room;
	uint64_t round; /* the last round that throughput_fleet_speed was asked about */
	double speed; /* the median of `sorted` when that round was first asked about */
};

/* Notes the speed of a task: `steps` in `seconds`, from when the task was handed out until its delta began to arrive. A task of 0 steps is
 * not noted; less than a millisecond counts as a millisecond. */
void throughput_note(struct throughput *s, uint64_t steps, double seconds);
/* The median of the recent speeds in steps a second, of an even number the mean of the middle two; 0: nothing is known. */
double throughput_median(const struct throughput *s);

void throughput_fleet_deinit(struct throughput_fleet *f);
/* throughput_note of one of the fleet's devices. ERR_NOMEM: nothing was noted. */
ERR_MUST_USE enum err throughput_fleet_note(
    struct throughput_fleet *f, struct throughput *s, uint64_t steps, double seconds);
/* To build a fleet from stored devices: throughput_fleet_add for each device, then throughput_fleet_order once, before any other call.
 * ERR_NOMEM. */
ERR_MUST_USE enum err throughput_fleet_add(struct throughput_fleet *f, const struct throughput *s);
void throughput_fleet_order(struct throughput_fleet *f);
/* Takes the device with these speeds out of the fleet. */
void throughput_fleet_drop(struct throughput_fleet *f, const struct throughput *s);
/* The median of the fleet's devices, in steps a second, as it was when `round` was first asked about: all unmeasured devices of a round get
 * as many steps. 0: no device was measured. An earlier round than the last one asked about gets that later round's speed. */
double throughput_fleet_speed(struct throughput_fleet *f, uint64_t round);

/* Steps of the device's task of this round in a job of LOCAL_SIZED: target_s x speed, rounded down, within min_steps and max_steps. Who
 * was not measured yet is taken to be as fast as the fleet (throughput_fleet_speed); min_steps while that is 0. */
uint64_t throughput_steps(struct throughput_fleet *f, uint64_t round,
    const struct local_spec *local, const struct throughput *s);

#endif
