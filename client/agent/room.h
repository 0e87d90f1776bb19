#ifndef ROOM_H
#define ROOM_H
#include "stock.h"

struct rivulet;
struct work;

/*
 * Is there room in memory for a task, before anything of it is downloaded? Only what the built-in trainer does is counted. *threads: with so
 * many it fits; 0: as the settings say; whether the work streams is set. ABORT_OUT_OF_MEMORY, with the work's two bytes and a sentence in
 * why, if it fits with none; ABORT_DATA_MISMATCH, with a sentence, if the network cannot learn from the set.
 */
enum abort_reason room_find(
    struct rivulet *r, struct stock_item *item, struct work *w, unsigned *threads, struct why *why);

#endif
