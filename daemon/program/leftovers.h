#ifndef LEFTOVERS_H
#define LEFTOVERS_H
#include "err.h"

struct services;

/*
 * Models without a row, at start. What the database explains goes: what a crash left of the round that is open, what retention let go
 * of. All else is of another or an older database, and is set aside in lost/: nothing that was acknowledged is removed because its
 * row is not there.
 */

/* s has store, models, spool and engine; no other thread runs. Logs what it set aside. */
ERR_MUST_USE enum err leftovers_settle(const struct services *s, struct why *why);

#endif
