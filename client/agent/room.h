#ifndef ROOM_H
#define ROOM_H
#include "data_sets.h"

struct rivulet;
struct work;

/*
 * Is there room in memory for a task, before its model is downloaded? Only the built-in trainer's memory is counted. *threads: the number
 * with which the task fits, 0: as the settings say; w->streams is set. ABORT_NONE: there is room. ABORT_OUT_OF_MEMORY, with
 * w->needed_bytes, w->memory_bytes and a sentence in why, if the task fits with no number of threads; ABORT_DATA_MISMATCH, with a sentence,
 * if the network cannot learn from the data set.
 */
enum abort_reason room_find(struct rivulet *r, struct data_sets_item *item, struct work *w,
    unsigned *threads, struct why *why);

#endif
