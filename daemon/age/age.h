#ifndef AGE_H
#define AGE_H
#include <stdbool.h>
#include <stdint.h>

#include "err.h"

struct services;
struct store;

/*
 * Whether the wall clock may be believed when something is to be deleted, or ended for good, because of its age (README.md). Any thread,
 * also the store's; one lock, held while the clocks are read and while a row is queued. Calls block only where noted.
 */
struct age;

enum age_doubt { AGE_BELIEVED, AGE_STEPPED, AGE_EARLIER, AGE_LATER };
/* The word for a doubt; "" for AGE_BELIEVED. */
const char *age_doubt_name(enum age_doubt d);

#define AGE_STEP_S 3600
#define AGE_LATER_S (7 * 86400)
#define AGE_SLACK_S 60
#define AGE_STORED_MS 3600000

/* At start, after the store is open and the incarnation is known: judges the clock by what is stored. Blocks. */
ERR_MUST_USE enum err age_new(
    struct age **out, const struct services *s, struct store *store, struct why *why);
/* The last look, before the store closes: what is believed is stored. NULL is legal. */
void age_stop(struct age *a);
void age_free(struct age *a);

/* *now: the time to judge ages by. False: the clock is doubted, and nothing may be deleted for its age. NULL (in tests): believed. */
bool age_now(struct age *a, double *now);
/* The time to store in a row by whose age something will be deleted; NaN while the clock is doubted. */
double age_stamp(struct age *a);
/* The wall clock, or, if that is later, the earliest time that it can be: for periods that must not end too soon. */
double age_latest(struct age *a);
/* Looks at the clock, so that a step is noticed also when nothing is deleted, and stores the time now and then. Call every second or so. */
void age_tick(struct age *a);

struct age_report {
	enum age_doubt doubt;
	double since_seconds; /* the wall clock when the doubt began; 0: believed */
	double newest_seconds; /* the newest stored time; 0: none */
	uint64_t steps_total; /* times since the start that the clock was found to have stepped */
	char detail[256]; /* what is wrong and what to do; "" while believed */
};
void age_report(struct age *a, struct age_report *out);

/* An administrator (by) says that the clock is right. *changed: it was doubted. Blocks; not from the store thread. */
ERR_MUST_USE enum err age_confirm(struct age *a, const char *by, bool *changed, struct why *why);

/* Judges this machine's clock by the times in a database: for commands that look at a state directory from outside. */
struct store_db;
ERR_MUST_USE enum err age_of_database(struct store_db *db, enum age_doubt *out);

#endif
