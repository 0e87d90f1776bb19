#ifndef FETCH_H
#define FETCH_H
#include "handle_inside.h"

/* Brings the base model of r->work.task into the cache and its path into r->work.path: from the cache, as a difference to one that
 * is there, or whole; from the mirror or the coordinator. A broken download goes on where it stopped. ERR_CORRUPT if what comes is not the model named. */
ERR_MUST_USE enum err fetch_model(struct rivulet *r, struct why *why);
/* The same by a difference alone (fetch_difference.c). Any failure but ERR_AGAIN (cancelled) leaves nothing and means: fetch it whole;
 * ERR_NOTFOUND without a reason: the task names no difference, or there is no use for it. */
ERR_MUST_USE enum err fetch_difference(struct rivulet *r, struct why *why);
/* The coordinator's control variate of a job that has them, as r->work.server (fetch_state.c); zeros before there is one.
 * ERR_INVALID: a state that does not fit the model. */
ERR_MUST_USE enum err fetch_state(struct rivulet *r, struct why *why);

#endif
