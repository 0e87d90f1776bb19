#ifndef SPEEDS_H
#define SPEEDS_H
#include <stdbool.h>

#include "throughput.h"

struct store_db;
struct store_round;

/*
 * The speeds of a job's devices and the numbers of steps of their tasks, for a job whose tasks are sized by the devices' speeds
 * (local.target_s). Under the caller's lock. All zero is an empty struct speeds.
 */
struct speeds_device {
	uint8_t id[32];
	struct throughput speed;
	/* The device was first measured in the round that was open at the coordinator's start. */
	bool newcomer;
};

struct speeds_task {
	uint8_t device[32];
	uint64_t round, steps;
	bool stored; /* the row is durable, and the task may be sent */
};

struct speeds {
	struct speeds_device *devices; /* sorted */
	size_t device_count, device_room;
	struct throughput_fleet fleet;
	struct speeds_task *tasks; /* sorted by device and round */
	size_t task_count, task_room;
	uint64_t oldest; /* tasks of rounds before this one are forgotten */
	/* The round that was open at the coordinator's start, and the steps that devices without a measured speed had been given in that
	 * round before the start. Round 0: no device had. */
	uint64_t newcomers_round, newcomers_steps;
};

void speeds_deinit(struct speeds *t);
/* Reads the rows of open->job; open: the job's open round. */
ERR_MUST_USE enum err speeds_load(
    struct speeds *t, struct store_db *db, const struct store_round *open);
/* The device's task of this round. If there is none yet, makes one whose steps follow from the device's speed or, if that was not
 * measured, from the speed of devices measured before this round. Forgets tasks of rounds before `oldest`. NULL: no memory. Valid until
 * the next call. */
const struct speeds_task *speeds_size(struct speeds *t, const struct local_spec *local,
    const uint8_t device[32], uint64_t round, uint64_t oldest);
/* The device's task of this round; NULL: there is none. */
const struct speeds_task *speeds_find(
    const struct speeds *t, const uint8_t device[32], uint64_t round);
/* Notes that the row of the device's task is durable. */
void speeds_stored(struct speeds *t, const uint8_t device[32], uint64_t round);
/* Notes that the device did so many steps in so many seconds; without memory its speed stays as it was. */
void speeds_note(struct speeds *t, const uint8_t device[32], uint64_t steps, double seconds);
/* Forgets speed and tasks of a device that is erased. */
void speeds_forget(struct speeds *t, const uint8_t device[32]);

#endif
