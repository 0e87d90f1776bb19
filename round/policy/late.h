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
/* The same as a factor of the delta, so that the divisor stays as it is, or of the delta's weight: *scale, 1 in the second case, and
 * *weight, which is multiplied. */
void late_apply(const struct staleness_spec *spec, uint64_t t, double *weight, double *scale);

/*
 * Which of a job's last rounds lie on the way to the model that the open round starts from: where a guard went back, what was made
 * after the model that it went back to does not. A delta of such a round's base leads away from a model that was given up.
 */
struct late_point {
	uint64_t round;
	uint8_t base[32]; /* what its tasks start from */
	uint8_t model
	    [32]; /* what it came to: the base again, if it failed; not looked at of the open round */
	bool live; /* its base lies on the way */
};

/* Sets `live` of all. points[0] is the open round, the others those before it without a gap, the newest first. */
void late_trace(struct late_point *points, size_t count);

/*
 * How often one device may be in the buffers of a job whose rule bears hostile ones. Such a rule counts liars among the deltas of a
 * round; where rounds take what comes first, whoever is fast is in every one of them, and a few fast liars are more of each buffer than
 * of the fleet. So a device rests after a delta: of n devices that ask, each has a turn every n / goal buffers if all are alike, and
 * none more than three times as often. A fleet of less than three times the goal needs everybody, and rests nobody.
 */

/* Buffers that a device waits after the one that took its delta. */
uint64_t late_rest(uint64_t devices, uint32_t goal);

/*
 * The bases of a buffered job that devices measure. Each delta of a buffer may have started from another model, and what its device says
 * is of that one: a base has a figure once as many as the quorum have answered its round's tasks, in whatever rounds they were folded.
 * That may be some rounds after its own, so that a guard that goes back must still know then who made it and which state it has.
 * Pure.
 */
#define LATE_BASES_MAX \
	32 /* models and states that are held for it; what is measured later is shown, and no guard sees it */

struct late_base {
	uint64_t round; /* whose tasks start from it */
	uint64_t maker; /* the round that made it; 0: the initial one */
	uint8_t model[32], state[32]; /* ids; zero: none */
};

/* Zero at first. */
struct late_bases {
	struct late_base items[LATE_BASES_MAX]; /* the oldest first */
	uint32_t count;
};

/* That of a newer round; the oldest makes way for it. */
void late_bases_add(struct late_bases *b, const struct late_base *newer);
/* Forgets those of rounds before this one: their tasks are too old, or a newer base is measured. */
void late_bases_forget(struct late_bases *b, uint64_t before);
/* A guard went back to this model, and gave up those of the last rounds: forgets all others. */
void late_bases_branch(struct late_bases *b, const uint8_t model[32]);
/* That of a round's tasks; NULL: it is not known any more. */
const struct late_base *late_bases_find(const struct late_bases *b, uint64_t round);

/* How many have answered a round's tasks by now. */
struct late_answers {
	uint64_t round, count;
};
/* The round whose base a buffer measures: the newest that has its quorum, after the one measured last. 0: none. */
uint64_t late_measured(
    const struct late_answers *all, size_t count, uint64_t last, uint32_t quorum);

#endif
