#ifndef START_H
#define START_H
#include <stdbool.h>
#include <stdint.h>

#include "config.h"
#include "err.h"

struct services;

/*
 * The spool at start, before any other thread: opens it as the configuration says and holds it against the database. Every
 * accepted delta of an open round is hashed again, on all cores. One that is damaged is named and condemned (spool_condemn). In
 * mode memory the rows of those that are damaged or gone are dropped instead, in one transaction: their devices have copies and
 * send them again.
 * With `[spool] path` STATE/spool becomes a link to it.
 */

/* s has configuration, store and signing key; sets s->spool and s->archive, also on failure once they are open. ERR_DENIED: a delta is encrypted with
 * another key than the one given, or the key's file is no key. */
ERR_MUST_USE enum err spool_start(struct services *s, struct why *why);

/* The spool's secret: of `[spool] key_file`, else of $CREDENTIALS_DIRECTORY/rivulet.spool-key, 32 bytes or 64 hex digits; *found false
 * if neither is there. Wipe it. */
ERR_MUST_USE enum err spool_start_secret(
    const struct config *c, uint8_t secret[32], bool *found, struct why *why);

#endif
