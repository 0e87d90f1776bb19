#ifndef FETCH_H
#define FETCH_H
#include "handle_inside.h"

/* Brings the base model of r->work.task into the cache and its path into r->work.path: from the cache, as a difference to a model in
 * the cache, or whole; from the mirror or the coordinator. An interrupted download goes on where it stopped. ERR_CORRUPT if the downloaded
 * bytes are not the model named. */
ERR_MUST_USE enum err fetch_model(struct rivulet *r, struct why *why);
/* fetch_model by a difference alone (fetch_difference.c). After any failure but ERR_AGAIN (cancelled) nothing is left and the caller
 * fetches the whole model; ERR_NOTFOUND without a reason: the task names no difference, or the difference is of no use. */
ERR_MUST_USE enum err fetch_difference(struct rivulet *r, struct why *why);
/* Fetches the coordinator's control variate to r->work.server (fetch_state.c), for a job with control variates; zeros before there is one.
 * ERR_INVALID: a state that does not fit the model. */
ERR_MUST_USE enum err fetch_state(struct rivulet *r, struct why *why);

#endif
