#ifndef INCARNATION_H
#define INCARNATION_H
#include "err.h"

struct services;

/*
 * Which life of this coordinator it is: in every receipt and audit entry. 1 at first; the Unix time, or one more if that is
 * higher, at the first start from a copy that `rivuletd backup` made, whose database says so. So no two lives have the same,
 * though both began with one copy, and receipts of a lower incarnation without a row are known to be of a life that was lost. A copy made by hand is not marked, and cannot be told from the directory itself.
 */

/* At start, after the store is open and keys are loaded: sets s->incarnation; of a restored copy raises it, takes the mark away, logs
 * and appends to the audit log, all in one transaction. */
ERR_MUST_USE enum err incarnation_begin(struct services *s, const char *state_dir, struct why *why);

#endif
