#ifndef START_H
#define START_H
#include <stdbool.h>
#include <stdint.h>

#include "config.h"
#include "err.h"

struct services;

/*
 * The spool at start, before any other thread: opens it as the configuration says and compares it with the database. Every
 * accepted delta of an open round is hashed again, on all cores. A damaged delta is logged and condemned (spool_condemn). In
 * mode memory the rows of damaged or missing deltas are deleted instead, in one transaction: the devices have copies and
 * send them again.
 * With `[spool] path` STATE/spool becomes a link to it.
 */

/* s has configuration, store and signing key; sets s->spool and s->archive, also on failure once they are open. ERR_DENIED: a delta is
 * encrypted with another key than the configured one, or the key file holds no key. */
ERR_MUST_USE enum err spool_start(struct services *s, struct why *why);

/* The spool's secret, from `[spool] key_file`, else from $CREDENTIALS_DIRECTORY/rivulet.spool-key, 32 bytes or 64 hex digits; *found is
 * false if there is neither. The caller wipes the secret. */
ERR_MUST_USE enum err spool_start_secret(
    const struct config *c, uint8_t secret[32], bool *found, struct why *why);

#endif
