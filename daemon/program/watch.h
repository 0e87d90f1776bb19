#ifndef WATCH_H
#define WATCH_H
#include "err.h"

struct services;

/* The thread that tries whether the trouble that health reports is over, and looks at the free space while there is none. */
struct watch;

/* services must be complete. */
ERR_MUST_USE enum err watch_new(
    struct watch **out, const struct services *services, struct why *why);
/* Ends the thread. */
void watch_stop(struct watch *h);
void watch_free(struct watch *h);

#endif
