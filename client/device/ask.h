#ifndef ASK_H
#define ASK_H
#include "handle_inside.h"

/* Makes r->offer: what this build and machine can do, and the one data set and trainer of a program with a loop of its own. The agent
 * replaces these two by the data sets and trainers of its settings. */
ERR_MUST_USE enum err ask_offer(
    struct rivulet *r, const struct rivulet_options *options, struct why *why);
/* One request for work. ERR_OK: r->work.task is set and r->has_work true; the model is not fetched yet. ERR_TIMEOUT: no task;
 * ask again in *pause_s seconds. A task of an unknown kind or with a recipe that this build cannot read is given back here
 * and counts as no task. Other errors of session_do and session_problem. wait_s: how long the coordinator may hold the request. */
ERR_MUST_USE enum err ask_once(
    struct rivulet *r, unsigned wait_s, double *pause_s, struct why *why);

#endif
