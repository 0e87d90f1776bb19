#ifndef SHARED_H
#define SHARED_H
#include "err.h"

/*
 * A value that any thread may use while another replaces it. Each value is counted by reference: it ends when it has been replaced and
 * the last who took it gave it back. Nothing blocks for longer than a list of the values still in use is walked, so a value may be
 * held across I/O.
 */
struct shared;

/* Takes over value; end frees one, NULL: values stay the caller's. On failure, too, value has ended. */
ERR_MUST_USE enum err shared_new(struct shared **out, void *value, void (*end)(void *value));
/* No value may be held any more. NULL is legal. */
void shared_free(struct shared *s);
/* After this the next shared_replace cannot fail. */
ERR_MUST_USE enum err shared_reserve(struct shared *s);
/* Takes over a fresh value, which those who come from now on get. One thread at a time, after shared_reserve. */
void shared_replace(struct shared *s, void *value);
/* The value as it is now, until it is given back; never NULL. */
const void *shared_take(struct shared *s);
/* NULL is legal. */
void shared_give(struct shared *s, const void *value);

#endif
