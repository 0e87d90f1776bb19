#ifndef FOLDER_H
#define FOLDER_H
#include "engine.h"

/*
 * Turns a closed round into a committed one: reads accepted deltas from the spool, folds them tile by tile in device-id
 * order on all cores, moves the weights, evaluates, writes the new model, commits, cleans up. One thread of its own takes
 * one round after another.
 */
struct folder;

ERR_MUST_USE enum err folder_new(
    struct folder **out, const struct services *services, struct why *why);
/* Copies f and queues it. Any thread, never blocks. */
ERR_MUST_USE enum err folder_submit(void *folder, const struct engine_fold *f);
/* Finishes the round at hand, forgets the queue (those rounds stay open and are folded after a restart). */
void folder_free(struct folder *d);

#endif
