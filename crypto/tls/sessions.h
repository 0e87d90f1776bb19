#ifndef SESSIONS_H
#define SESSIONS_H
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/*
 * Internal to crypto/: a server's cache of TLS sessions, by session id. mbedTLS's own is one list under a lock;
 * this one finds an entry among SESSIONS_WAYS whatever its size. An entry holds secrets: it is wiped when it
 * goes. Any thread; a call holds the lock for one copy of a session. Times are seconds of any clock that does
 * not go back.
 */
#define SESSIONS_ID_MAX 32
#define SESSIONS_BLOB_MAX 4096
#define SESSIONS_WAYS 8
#define SESSIONS_LIFETIME 3600 /* seconds */

struct sessions;

/* NULL if memory is short. Room for at least `entries` sessions spread evenly; where a set of SESSIONS_WAYS is
 * full, its oldest goes. */
struct sessions *sessions_new(unsigned entries);
void sessions_free(struct sessions *s);
/* Copies the blob in; replaces an entry of the same id. ERR_LIMIT for a longer id or blob than the limits. */
ERR_MUST_USE enum err sessions_put(struct sessions *s, const uint8_t *id, size_t id_len,
    const void *blob, size_t len, int64_t now);
/* Copies the blob out; *len enters as room. ERR_NOTFOUND if there is none or it is too old. */
ERR_MUST_USE enum err sessions_get(
    struct sessions *s, const uint8_t *id, size_t id_len, void *blob, size_t *len, int64_t now);
/* Forgets all. */
void sessions_forget(struct sessions *s);

#endif
