#ifndef CROWD_H
#define CROWD_H
#include "roster.h"
#include "throughput.h"

struct prng;

/*
 * The devices as the coordinator knows them: who waits for a task, and the place that each has in the job (round/roster). What the end of
 * a round, or its being opened again, does to a place is done when somebody looks at that. Pure.
 */
struct simulate_crowd {
	const struct fleet *fleet;
	struct roster_round roster; /* the open round, for the places */
	uint32_t opening; /* of it: how often it was opened again */
	uint32_t *waiting; /* devices without a task, in no order */
	size_t waiting_count;
	struct simulate_person {
		uint32_t at; /* in waiting; UINT32_MAX: it has a task, or may never have one */
		uint32_t tasks; /* that it was given */
		uint32_t folded; /* deltas that made models */
		uint32_t opening;
		uint64_t round; /* the place is as it was in this opening of this round */
		uint64_t held; /* the last round whose base it fetched, 0 if none */
		struct roster_place place;
	} * people;
	struct throughput *speeds; /* of each device; NULL: nobody wants them */
	struct throughput_fleet fleet_speeds;
};

/* Nobody waits yet, and no round is open: of *roster all but the round's own is meant. `sized`: devices are timed. ERR_NOMEM. */
ERR_MUST_USE enum err simulate_crowd_init(struct simulate_crowd *c, const struct fleet *fleet,
    const struct roster_round *roster, bool sized);
void simulate_crowd_deinit(struct simulate_crowd *c);
/* If devices are timed: so many steps took so long, from the task to the delta. ERR_NOMEM. */
ERR_MUST_USE enum err simulate_crowd_time(
    struct simulate_crowd *c, size_t device, uint64_t steps, double seconds);
/* How many the device's task in the open round has, devices being timed. */
uint64_t simulate_crowd_steps(
    struct simulate_crowd *c, size_t device, const struct local_spec *local);
/* A round begins; its machine is told after that. */
void simulate_crowd_open(
    struct simulate_crowd *c, uint64_t round, size_t point_count, bool evaluates, uint64_t us);
/* It is opened again. */
void simulate_crowd_reopen(struct simulate_crowd *c);
/* It waits for a task; it does not any more. */
void simulate_crowd_wait(struct simulate_crowd *c, size_t device);
void simulate_crowd_leave(struct simulate_crowd *c, size_t device);
/* The device's place as it is now. */
struct roster_place simulate_crowd_place(const struct simulate_crowd *c, size_t device);
/* Something happened to it: a set of roster_action. */
unsigned simulate_crowd_step(
    struct simulate_crowd *c, size_t device, const struct roster_event *e, uint64_t us);
/* Does it wait, and is its task out all the same? */
bool simulate_crowd_holds(const struct simulate_crowd *c, size_t device);

/* Does it wait, is it there, and would the round be asked for a place for it? */
bool simulate_crowd_asks(const struct simulate_crowd *c, size_t device, uint64_t us);
/* One of those, each as likely as another; SIZE_MAX if there is none. */
size_t simulate_crowd_first(const struct simulate_crowd *c, struct prng *rng, uint64_t us);
/* The `most` of them that a round with a draw takes, in the order of their ids. Returns how many there are; SIZE_MAX without memory. */
size_t simulate_crowd_draw(
    const struct simulate_crowd *c, size_t *out, size_t most, uint64_t seed, uint64_t us);

#endif
