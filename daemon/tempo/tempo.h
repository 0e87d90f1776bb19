#ifndef TEMPO_H
#define TEMPO_H
#include <stdbool.h>

#include "throughput.h"

struct store_db;
struct store_round;

/*
 * How fast a job's devices are, and how many steps their tasks have: the memory of one job whose tasks are sized by that
 * (local.target_s). No lock of its own: the caller has one. All zero is an empty one.
 */
struct tempo_device {
	uint8_t id[32];
	struct throughput speed;
	bool newcomer; /* it was first measured in the round that was open at the start */
};

struct tempo_task {
	uint8_t device[32];
	uint64_t round, steps;
	bool stored; /* durable: it may go out */
};

struct tempo {
	struct tempo_device *devices; /* sorted */
	size_t device_count, device_room;
	struct throughput_fleet fleet;
	struct tempo_task *tasks; /* sorted by device and round */
	size_t task_count, task_room;
	uint64_t oldest; /* tasks of rounds before it are forgotten */
	/* Of the round that was open at the start: the steps that newcomers were given before it. Round 0: there were none. */
	uint64_t newcomers_round, newcomers_steps;
};

void tempo_deinit(struct tempo *t);
/* Reads the rows of a job that has this open round. */
ERR_MUST_USE enum err tempo_load(
    struct tempo *t, struct store_db *db, const struct store_round *open);
/* The device's task of this round: the one that there is, or a new one of as many steps as the device is fast, or as the devices
 * measured before this round are while it was not. Tasks of rounds before `oldest` go. NULL: no memory. Valid until the next call. */
const struct tempo_task *tempo_size(struct tempo *t, const struct local_spec *local,
    const uint8_t device[32], uint64_t round, uint64_t oldest);
/* NULL: there is none. */
const struct tempo_task *tempo_find(
    const struct tempo *t, const uint8_t device[32], uint64_t round);
/* Its row is durable. */
void tempo_stored(struct tempo *t, const uint8_t device[32], uint64_t round);
/* The device did so many steps; without memory it stays as fast as it was. */
void tempo_note(struct tempo *t, const uint8_t device[32], uint64_t steps, double seconds);
/* A device is erased. */
void tempo_forget(struct tempo *t, const uint8_t device[32]);

#endif
