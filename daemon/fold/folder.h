#ifndef FOLDER_H
#define FOLDER_H
#include "job_fold.h"

/*
 * Turns closed rounds into committed ones: reads accepted deltas from the spool, folds them tile by tile in device-id order on all cores,
 * moves the weights, has the model evaluated, writes it, commits, cleans up. Threads of its own take rounds of several jobs at a time,
 * those of an owner one after another, and small ones beside large ones.
 */
struct folder;

ERR_MUST_USE enum err folder_new(
    struct folder **out, const struct services *services, struct why *why);
/* Copies f and queues it. Any thread, never blocks. */
ERR_MUST_USE enum err folder_submit(void *folder, const struct engine_fold *f);
/* Finishes the rounds at hand, or breaks them off where services->stop was asked for, and forgets the queue: rounds that are not committed
 * stay as they are in the store, and are folded after a restart. */
void folder_free(struct folder *d);

#endif
