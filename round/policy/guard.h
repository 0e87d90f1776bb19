#ifndef GUARD_H
#define GUARD_H
#include "job.h"

/*
 * Decides when a metric has collapsed, and which model to go back to. A pure machine, fed with each round's metric: coordinator
 * and `rivulet verify` come to the same decisions from the same rounds.
 *
 * The best is the best metric among the last `window` good rounds (of equal rounds the newer). A round is bad if its value is not finite,
 * if its accuracy, or an own metric that rises, is more than `drop` below the best, or if its loss, or an own metric that falls, is above
 * best + (factor - 1) |best| (factor times the best, if that is positive). Bad rounds never become the best and do not move the window.
 * `rounds` bad rounds in a row are a collapse; a round without the metric neither counts nor ends the row.
 */

/* A model whose metric is known, and what belongs to it. */
struct guard_point {
	double value;
	uint64_t round; /* the round that made the model; 0: the initial model */
	uint8_t model[32], state[32]; /* ids; zero: none */
	uint64_t at; /* number among the good rounds, set by guard_step */
};

struct guard {
	/* The rounds that may still become the best, oldest first; each is better than all after it, so the first is the best. */
	struct guard_point points[GUARD_WINDOW_MAX];
	uint32_t count;
	uint64_t good; /* good rounds so far */
	uint32_t bad; /* bad rounds in a row by now */
	uint32_t rollbacks; /* since the job began, or was last paused by the guard */
	bool anew; /* the guard paused the job: its counts begin anew with the next round */
};

enum guard_verdict {
	GUARD_CALM, /* the round is good, or its metric not known */
	GUARD_BAD, /* the round is bad, but not yet `rounds` in a row */
	GUARD_STOP,
	GUARD_PAUSE,
	GUARD_ROLLBACK, /* the job goes on from the best model */
	GUARD_ROLLBACK_PAUSE, /* the job goes on from the best model once a person resumes it: `times` rollbacks are used up */
	GUARD_UNKNOWN, /* a word that this version does not know */
};
/* The word of a verdict in a round's record; "" where the guard did nothing. */
const char *guard_word(enum guard_verdict verdict);
/* The verdict of a word; GUARD_CALM for "", GUARD_UNKNOWN for a word that this version does not know. */
enum guard_verdict guard_find(const char *word);

/* Judges the next round. *g is zero at first. known: false if the round was not evaluated. p->value is NaN if the metric is unknown
 * (accuracy, own) or not a number (loss), -INFINITY for the accuracy of a model whose outputs are not finite. */
enum guard_verdict guard_step(
    struct guard *g, const struct guard_spec *spec, const struct guard_point *p, bool known);
/* The best round; NULL if there is none. Valid until the next step. */
const struct guard_point *guard_best(const struct guard *g);
/* Does a round that may still become the best have this model, or this state? */
bool guard_holds_model(const struct guard *g, const uint8_t model[32]);
bool guard_holds_state(const struct guard *g, const uint8_t state[32]);

#endif
