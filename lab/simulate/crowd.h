#ifndef CROWD_H
#define CROWD_H
#include "throughput.h"

struct prng;

/*
 * The devices as the coordinator knows them: who waits for a task, and who had one in the round that is open. A round's opening is the
 * time from its beginning, or from its deadline without enough reports, to the next of these. Pure.
 */
enum simulate_mark {
	SIMULATE_OUT, /* has a task */
	SIMULATE_ACCEPTED, /* its delta is in the round */
	SIMULATE_ABORTED, /* it gave up */
};

struct simulate_crowd {
	const struct fleet *fleet;
	uint32_t *waiting; /* devices without a task, in no order */
	size_t waiting_count;
	struct simulate_person {
		uint32_t place; /* in waiting; UINT32_MAX: it has a task, or may never have one */
		uint32_t tasks; /* that it was given */
		uint32_t folded; /* deltas that made models */
		uint32_t opening;
		uint64_t round; /* of its mark; 0: none */
		uint64_t taken_in; /* the last round that took a delta of it, */
		uint32_t taken; /* so many */
		uint64_t held; /* the last round whose base it fetched, 0 if none */
		enum simulate_mark mark;
	} * people;
	struct throughput *speeds; /* of each device; NULL: nobody wants them */
	struct throughput_fleet fleet_speeds;
	uint64_t round;
	uint32_t opening;
	uint32_t per_device; /* deltas of one device that a round takes */
	uint64_t rest; /* rounds that a device waits after the one that took its delta */
};

/* Nobody waits yet. `sized`: devices are timed. ERR_NOMEM. */
ERR_MUST_USE enum err simulate_crowd_init(
    struct simulate_crowd *c, const struct fleet *fleet, uint32_t per_device, bool sized);
void simulate_crowd_deinit(struct simulate_crowd *c);
/* If devices are timed: so many steps took so long, from the task to the delta. ERR_NOMEM. */
ERR_MUST_USE enum err simulate_crowd_time(
    struct simulate_crowd *c, size_t device, uint64_t steps, double seconds);
/* How many the device's task in the open round has, devices being timed. */
uint64_t simulate_crowd_steps(
    struct simulate_crowd *c, size_t device, const struct local_spec *local);
void simulate_crowd_open(struct simulate_crowd *c, uint64_t round, uint32_t opening);
/* Devices rest as in a coordinator whose rule bears hostile ones (round/policy/late). */
void simulate_crowd_rest(struct simulate_crowd *c, uint32_t goal, uint64_t us);
/* It waits for a task; it does not any more. */
void simulate_crowd_wait(struct simulate_crowd *c, size_t device);
void simulate_crowd_leave(struct simulate_crowd *c, size_t device);
/* Its task of the open round. */
void simulate_crowd_mark(struct simulate_crowd *c, size_t device, enum simulate_mark mark);
/* The open round took a delta of it, whatever round the task was of. */
void simulate_crowd_took(struct simulate_crowd *c, size_t device);
/* Has it had its turn: a mark of this opening, an accepted task of this round, or as many deltas in it as it may have? */
bool simulate_crowd_marked(const struct simulate_crowd *c, size_t device);

/* Does it wait, is it there, and may it have a task of this round? */
bool simulate_crowd_asks(const struct simulate_crowd *c, size_t device, uint64_t us);
/* One of those, each as likely as another; SIZE_MAX if there is none. */
size_t simulate_crowd_first(const struct simulate_crowd *c, struct prng *rng, uint64_t us);
/* The `most` of them that a round with a draw takes, in the order of their ids. Returns how many there are; SIZE_MAX without memory. */
size_t simulate_crowd_draw(
    const struct simulate_crowd *c, size_t *out, size_t most, uint64_t seed, uint64_t us);

#endif
