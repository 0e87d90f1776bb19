#ifndef LATE_H
#define LATE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct staleness_spec;

/* Deltas that are folded in another round than their task's: what they count, which are of no more use, and whose turn it is. Pure. */

/*
 * What a delta counts that was trained on an older base: s(t), t being the rounds between its task's and the one it is folded in.
 * FedBuff's (Nguyen et al. 2022) is 1 / sqrt(1 + t), which is 1 for a fresh one. Never above 1, so that no delta counts more than it
 * would have in its own round. Only sums, quotients and square roots: the same bits everywhere.
 */
double late_weight(const struct staleness_spec *spec, uint64_t t);
/* Applies late_weight. STALENESS_BY_COUNT: *scale, a factor of the delta, becomes s(t) and *weight stays. STALENESS_BY_WEIGHTS: *weight is
 * multiplied by s(t) and *scale becomes 1. */
void late_apply(const struct staleness_spec *spec, uint64_t t, double *weight, double *scale);

/*
 * Which of a job's last rounds led to the model that the open round starts from. Where a guard went back, the rounds after the model that
 * it went back to did not; a delta that starts from such a round's base belongs to a model that was given up.
 */
struct late_point {
	uint64_t round;
	uint8_t base[32]; /* the model that the round's tasks start from */
	/* The model that the round made; the base again if it failed. Not used of the open round. */
	uint8_t model[32];
	bool live; /* `base` led to the model that the open round starts from */
};

/* Puts the point of a newer round before the others, with model zero, keeps at most `most` points, and sets `live` of all (late_trace). */
void late_open(
    struct late_point *points, size_t *count, size_t most, uint64_t round, const uint8_t base[32]);
/* The point of a round; NULL: not among them. */
const struct late_point *late_find(const struct late_point *points, size_t count, uint64_t round);
/* Sets `live` of all points: points[0] is the open round, the others are the rounds before it without a gap, the newest first. */
void late_trace(struct late_point *points, size_t count);

/*
 * How often one device may be in the buffers of a job whose rule bears hostile ones. Such a rule counts liars among the deltas of a
 * round; where rounds take what comes first, a fast device is in every one of them, and a few fast liars are a larger share of each buffer
 * than of the fleet. So a device waits after a delta: of n devices that ask, each has a turn every n / goal buffers if all are alike, and
 * none more than three times as often. A fleet of less than three times the goal needs every device, and none waits.
 */

/* How many buffers a device waits after the buffer that took its delta; devices: how many ask. */
uint64_t late_rest(uint64_t devices, uint32_t goal);

/*
 * The bases of a buffered job that devices measure. Each delta of a buffer may have started from another model, and its device's figures
 * are of that model: a base has a figure once a quorum of devices has answered its round's tasks, in whatever rounds their deltas were
 * folded. That may be some rounds later, and a guard that goes back then needs the round that made the base, and its state. Pure.
 */
#define LATE_BASES_MAX \
	32 /* bases whose models and states are held; figures of older bases are shown, but no guard sees them */

struct late_base {
	uint64_t round; /* the round whose tasks start from this base */
	uint64_t maker; /* the round that made the base; 0: the initial model */
	uint8_t model[32], state[32]; /* ids; zero: none */
};

/* Zero at first. */
struct late_bases {
	struct late_base items[LATE_BASES_MAX]; /* the oldest first */
	uint32_t count;
};

/* Adds the base of a newer round; if *b is full, the oldest goes. */
void late_bases_add(struct late_bases *b, const struct late_base *newer);
/* Forgets the bases of rounds before `before`: their tasks are too old, or a newer base is measured. */
void late_bases_forget(struct late_bases *b, uint64_t before);
/* A guard went back to `model` and gave up the models of the last rounds: forgets all bases but that model. */
void late_bases_branch(struct late_bases *b, const uint8_t model[32]);
/* The base that this round's tasks start from; NULL: no longer known. */
const struct late_base *late_bases_find(const struct late_bases *b, uint64_t round);

/* How many devices have answered a round's tasks by now. */
struct late_answers {
	uint64_t round, count;
};
/* The round whose base a closed buffer measures: the newest round after `last` (measured last) that has a quorum of answers. 0: none. */
uint64_t late_measured(
    const struct late_answers *all, size_t count, uint64_t last, uint32_t quorum);

#endif
