#ifndef RESERVE_H
#define RESERVE_H
#include <stdbool.h>
#include <stdint.h>

#include "err.h"

/*
 * A file that holds room on the disk for what an administrator does when the disk is full. It is given up in slices: whoever else fills
 * the disk meanwhile takes one of them and not all. Any thread.
 */
struct reserve;

ERR_MUST_USE enum err reserve_new(struct reserve **out, const char *path);
void reserve_free(struct reserve *r); /* the file stays */
/* Gives up a slice; false if nothing is left. For store_reserve. */
bool reserve_give(void *reserve);
/* Has the file hold `bytes` from now on. It is made, and made again, only while as much stays free besides; to make it may take as
 * long as to write it. */
void reserve_keep(struct reserve *r, uint64_t bytes);
/* What it holds now. */
uint64_t reserve_held(struct reserve *r);

#endif
