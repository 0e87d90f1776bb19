#ifndef FETCH_H
#define FETCH_H
#include "handle.h"

/* Brings the base model of r->work.task into the cache and its path into r->work.path: from the cache, the mirror, or
 * the coordinator. A broken download goes on where it stopped. ERR_CORRUPT if what comes is not the model named. */
ERR_MUST_USE enum err fetch_model(struct rivulet *r, struct why *why);

#endif
