#ifndef RESERVE_H
#define RESERVE_H
#include <stdbool.h>
#include <stdint.h>

#include "err.h"

/*
 * A file that reserves room on the disk for what an administrator does when the disk is full. The file is given up in slices: another
 * writer that fills the disk meanwhile takes one slice and not all. Any thread.
 */
struct reserve;

ERR_MUST_USE enum err reserve_new(struct reserve **out, const char *path);
void reserve_free(struct reserve *r); /* the file stays */
/* Gives up a slice of the file; false if nothing is left. For store_reserve. */
bool reserve_give(void *reserve);
/* Sets the size of the file to `bytes`. The file is made, and made again, only while as much stays free besides; making it may take as
 * long as writing so many bytes. */
void reserve_keep(struct reserve *r, uint64_t bytes);
/* The bytes that the file reserves now. */
uint64_t reserve_held(struct reserve *r);

#endif
