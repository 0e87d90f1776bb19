#ifndef BASES_H
#define BASES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The bases of a buffered job that devices measure. Each delta of a buffer may have started from another model, and what its device says
 * is of that one: a base has a figure once as many as the quorum have answered its round's tasks, in whatever rounds they were folded.
 * That may be some rounds after its own, so that a guard that goes back must still know then who made it and which state it has.
 * Pure.
 */
#define BASES_MAX \
	32 /* models and states that are held for it; what is measured later is shown, and no guard sees it */

struct base {
	uint64_t round; /* whose tasks start from it */
	uint64_t maker; /* the round that made it; 0: the initial one */
	uint8_t model[32], state[32]; /* ids; zero: none */
};

/* Zero at first. */
struct bases {
	struct base items[BASES_MAX]; /* the oldest first */
	uint32_t count;
};

/* That of a newer round; the oldest makes way for it. */
void bases_add(struct bases *b, const struct base *newer);
/* Forgets those of rounds before this one: their tasks are too old, or a newer base is measured. */
void bases_forget(struct bases *b, uint64_t before);
/* A guard went back to this model, and gave up those of the last rounds: forgets all others. */
void bases_branch(struct bases *b, const uint8_t model[32]);
/* That of a round's tasks; NULL: it is not known any more. */
const struct base *bases_find(const struct bases *b, uint64_t round);

/* How many have answered a round's tasks by now. */
struct base_answers {
	uint64_t round, count;
};
/* The round whose base a buffer measures: the newest that has its quorum, after the one measured last. 0: none. */
uint64_t bases_measured(
    const struct base_answers *all, size_t count, uint64_t last, uint32_t quorum);

#endif
