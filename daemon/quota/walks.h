#ifndef WALKS_H
#define WALKS_H
#include <stdbool.h>
#include <stdint.h>

#include "err.h"

/* Long looks through many rows: of one identity one at a time, so that nobody takes all workers and the store's reader by asking
 * for several at once. Any thread, never blocks. */
struct walks;

ERR_MUST_USE enum err walks_new(struct walks **out);
/* NULL is legal, here and below: then everybody may. */
void walks_free(struct walks *w);
/* Begins one. False: this identity walks already, or there is no memory; else the caller ends it with walks_leave. */
bool walks_enter(struct walks *w, const uint8_t who[32]);
void walks_leave(struct walks *w, const uint8_t who[32]);

#endif
