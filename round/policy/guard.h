#ifndef GUARD_H
#define GUARD_H
#include "job.h"

/*
 * When a metric has collapsed, and which model is good to go back to. A pure machine, fed with each round's metric: coordinator
 * and `rivulet verify` come to the same decisions from the same rounds.
 *
 * The best is the best metric among the last `window` good rounds (the newer one of equals). A round is bad if its accuracy, or an
 * own metric that rises, is more than `drop` below the best, its loss, or an own metric that falls, above best + (factor - 1) |best| (factor times the best, where that is positive),
 * or its value is not finite. Bad rounds never become the best and do not move the window. `rounds` bad ones in a row are a
 * collapse; a round without the metric neither counts nor breaks the row.
 */

/* A model whose metric is known, and what belongs to it. */
struct guard_point {
	double value;
	uint64_t round; /* that made the model, 0: the initial one */
	uint8_t model[32], state[32]; /* ids; zero: none */
	uint64_t at; /* number among the good ones, set by guard_step */
};

struct guard {
	/* Oldest first, each better than all after it: what may still become the best. The first is the best. */
	struct guard_point points[GUARD_WINDOW_MAX];
	uint32_t count;
	uint64_t good; /* rounds so far */
	uint32_t bad; /* rounds in a row */
	uint32_t rollbacks; /* since the job began, or was last paused by the guard */
	bool anew; /* paused by the guard: the next round is a new beginning */
};

enum guard_verdict {
	GUARD_CALM, /* good, or nothing known */
	GUARD_BAD, /* bad, and not yet often enough */
	GUARD_STOP,
	GUARD_PAUSE,
	GUARD_ROLLBACK, /* go on from the best */
	GUARD_ROLLBACK_PAUSE, /* likewise, but a person must look first: it was done `times` times */
	GUARD_UNKNOWN, /* in no record of this version's */
};
/* As a round's record says it; "" for what the guard did nothing about. */
const char *guard_word(enum guard_verdict verdict);
/* GUARD_CALM for ""; GUARD_UNKNOWN for a word that this version does not know. */
enum guard_verdict guard_find(const char *word);

/* *g is zero at first. p->value is NaN where the metric is unknown (accuracy, own) or not a number (loss), -INFINITY for the accuracy of
 * a model that gives no numbers; known: false if the round was not evaluated. */
enum guard_verdict guard_step(
    struct guard *g, const struct guard_spec *spec, const struct guard_point *p, bool known);
/* The best; NULL if there is none. Valid until the next step. */
const struct guard_point *guard_best(const struct guard *g);
/* Is it one of those that may still become the best? */
bool guard_holds_model(const struct guard *g, const uint8_t model[32]);
bool guard_holds_state(const struct guard *g, const uint8_t state[32]);

#endif
