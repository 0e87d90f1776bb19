#ifndef ASK_H
#define ASK_H
#include "handle_inside.h"

/* Makes r->offer: what this build and machine can do, and the one data set and trainer of a program's own loop; the agent puts what its
 * settings name in their place. */
ERR_MUST_USE enum err ask_offer(
    struct rivulet *r, const struct rivulet_options *options, struct why *why);
/* One request for work. ERR_OK: r->work.task is set and r->has_work true, the model not yet fetched. ERR_TIMEOUT: none;
 * *pause_s says when to ask again. A task of an unknown kind or with a recipe this build cannot read is given back here
 * and counts as none. Otherwise as session_do and session_problem. wait_s: how long the coordinator may hold it. */
ERR_MUST_USE enum err ask_once(
    struct rivulet *r, unsigned wait_s, double *pause_s, struct why *why);

#endif
