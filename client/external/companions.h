#ifndef COMPANIONS_H
#define COMPANIONS_H
#include "abort_reason.h"
#include "companion.h"
#include "settings.h"

/*
 * The persistent programs (companion.h), one for each trainer, each started when there is a task for it. A program serves one job, or with
 * share_jobs one data set, and is started anew for another, and when the program's files have changed.
 */
struct companions {
	struct companion_place place;
	/* In the order of the settings' trainers; NULL: not needed so far. */
	struct companion *items[SETTINGS_TRAINERS_MAX];
	const struct companion *busy; /* the one that has a task; NULL: none has */
};

struct companions_result {
	bool asked; /* the program was told to finish early: the work may be partial */
	enum abort_reason abort; /* on failure: the reason */
};

/* Begins; no program is started yet. */
void companions_init(struct companions *c, const struct companion_place *place);
/* Tells all programs to leave, kills those that have not within 2 LIFECYCLE_LEAVE_S, and frees them. Blocks. */
void companions_deinit(struct companions *c);
/* Call now and then, also from a task's `stop`: reads what idle programs write, tells programs to leave that were idle for too long,
 * notices the end of programs. Does not block. */
void companions_tend(struct companions *c);
/* Before the task's directory is made: starts the trainer's program if it does not run, after a failure not before the back-off is over.
 * Blocks for the back-off, and until a program has left that was started for another job or from files that have changed. ERR_AGAIN:
 * t->stop ended the wait; ERR_TIMEOUT: the back-off is longer than the task's time; else the error of the start. */
ERR_MUST_USE enum err companions_call(struct companions *c, const struct companion_task *t,
    struct companions_result *out, struct why *why);
/* In place of companions_run, if the task could not be prepared: the program stays, and its idle time begins. */
void companions_drop(struct companions *c, const struct companion_task *t);
/* Gives the program the task in `directory` and waits until the task is done, or has failed: ERR_INVALID, ERR_NOMEM, ERR_NOTFOUND,
 * ERR_TIMEOUT, or ERR_AGAIN if the agent is to end. */
ERR_MUST_USE enum err companions_run(struct companions *c, const struct companion_task *t,
    const char *directory, struct companions_result *out, struct why *why);
/* The end of the program's output since companions_call; valid until the next companions_call. */
const char *companions_log(const struct companions *c, const struct companion_task *t);

#endif
