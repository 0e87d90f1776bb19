#ifndef LEFTOVERS_H
#define LEFTOVERS_H
#include "err.h"

struct services;

/*
 * Models without a row, at start. A model that the database explains is removed: left by a crash in the open round, or already given up
 * by retention. Any other is of another database, or an older one, and is set aside in lost/: nothing that was acknowledged is removed
 * because its row is missing.
 */

/* s has store, models, spool and engine; no other thread runs. Logs the models that were set aside. */
ERR_MUST_USE enum err leftovers_settle(const struct services *s, struct why *why);

#endif
