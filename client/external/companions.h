#ifndef COMPANIONS_H
#define COMPANIONS_H
#include "abort_reason.h"
#include "companion.h"
#include "settings.h"

/*
 * The programs that stay, one of each trainer, each started when there is a task for it. It is of one job, or with share_jobs of one data
 * set, and is started anew for another, and when its program's files have changed.
 */
struct companions {
	struct companion_place place;
	struct companion
	    *items[SETTINGS_TRAINERS_MAX]; /* as the settings' trainers; NULL: never wanted yet */
	const struct companion *busy; /* with a task; NULL: none is */
};

struct companions_result {
	bool asked; /* it was told to finish: the work may be partial */
	enum abort_reason abort; /* of a failure */
};

/* Nothing is started yet. */
void companions_init(struct companions *c, const struct companion_place *place);
/* Has all of them leave, and kills those that do not within 2 COURSE_LEAVE_S. */
void companions_deinit(struct companions *c);
/* Call it now and then, also from `stop` of a task: takes what idle ones write, has those leave that are idle for too long, notices the
 * end of others. Does not block. */
void companions_tend(struct companions *c);
/* Before the task's directory is made: has the program started, if it is not there, within a back-off after a failure. Blocks for
 * that, and for the leaving of a program that was started for another job, or from files that are others now. ERR_AGAIN: stopped; ERR_TIMEOUT: the back-off
 * is longer than the task's time; else what could not be done. */
ERR_MUST_USE enum err companions_call(struct companions *c, const struct companion_task *t,
    struct companions_result *out, struct why *why);
/* Instead of companions_run: the task could not be prepared. The program stays, and its idle time begins. */
void companions_drop(struct companions *c, const struct companion_task *t);
/* Gives it the task in `directory` and waits until it is done, or has failed: ERR_INVALID, ERR_NOMEM, ERR_NOTFOUND, ERR_TIMEOUT,
 * ERR_AGAIN where the agent is to end. */
ERR_MUST_USE enum err companions_run(struct companions *c, const struct companion_task *t,
    const char *directory, struct companions_result *out, struct why *why);
/* The end of what it said since companions_call; until the next. */
const char *companions_log(const struct companions *c, const struct companion_task *t);

#endif
