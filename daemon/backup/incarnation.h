#ifndef INCARNATION_H
#define INCARNATION_H
#include "err.h"

struct services;

/*
 * The incarnation: a number in every receipt and audit entry that tells apart a coordinator and those restored from its backups. It is 1
 * at first; at the first start from a copy that `rivuletd backup` made, whose database has a mark, it becomes the Unix time, or one more
 * than before if that is higher. So two states that were restored from one copy differ, and a receipt of a lower incarnation without a row
 * is known to be of a state that was lost. A copy made by hand has no mark, and cannot be told from the original directory.
 */

/* At start, after the store is open and keys are loaded: sets s->incarnation; in a restored copy raises it, removes the mark and appends to
 * the audit log, all in one transaction, and logs. */
ERR_MUST_USE enum err incarnation_begin(struct services *s, const char *state_dir, struct why *why);

#endif
