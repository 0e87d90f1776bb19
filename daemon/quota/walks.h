#ifndef WALKS_H
#define WALKS_H
#include <stdbool.h>
#include <stdint.h>

#include "err.h"

/* Walks, which are requests that look through many rows: an identity may have one at a time, so that nobody takes all workers and the
 * store's reader. Any thread, never blocks. */
struct walks;

ERR_MUST_USE enum err walks_new(struct walks **out);
/* NULL is legal for each call with a struct walks: then every walk may begin. */
void walks_free(struct walks *w);
/* Begins a walk. False: this identity has one already, or there is no memory; else the caller ends the walk with walks_leave. */
bool walks_enter(struct walks *w, const uint8_t who[32]);
void walks_leave(struct walks *w, const uint8_t who[32]);

#endif
