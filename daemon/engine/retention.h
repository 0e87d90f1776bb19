#ifndef RETENTION_H
#define RETENTION_H
#include "err.h"

struct engine;

/*
 * Which old models go ([retention] keep_last, keep_every): of all jobs alike, also of those that are over, whose guards hold their
 * best model alone.
 */

/* After a round, or when a job was stopped: removes what is no longer kept, rows first and files after. Any thread but the
 * store's; waits for the disk. What an error or a crash leaves goes with a later pass. */
ERR_MUST_USE enum err retention_pass(struct engine *g);

#endif
