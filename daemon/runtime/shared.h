#ifndef SHARED_H
#define SHARED_H
#include "err.h"

/*
 * A value that any thread may use while another thread replaces it. Each value is counted by reference: a value is freed once it was
 * replaced and its last user gave it back. Calls block only while a list of the values in use is walked, so a value may be
 * held across I/O.
 */
struct shared;

/* Takes over value; `end` frees a value, NULL: values stay the caller's. On failure value was freed, too. */
ERR_MUST_USE enum err shared_new(struct shared **out, void *value, void (*end)(void *value));
/* No value may be held any more. NULL is legal. */
void shared_free(struct shared *s);
/* Allocates what the next shared_replace needs, which then cannot fail. */
ERR_MUST_USE enum err shared_reserve(struct shared *s);
/* Takes over a new value, which shared_take returns from now on. One thread at a time, after shared_reserve. */
void shared_replace(struct shared *s, void *value);
/* The value as it is now, until it is given back; never NULL. */
const void *shared_take(struct shared *s);
/* NULL is legal. */
void shared_give(struct shared *s, const void *value);

#endif
