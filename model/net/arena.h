#ifndef ARENA_H
#define ARENA_H
#include <stdbool.h>
#include <stddef.h>

/* Places for things that live for a while, in one stretch of memory: two that never live at once may lie on each other. Pure. */
struct arena_item {
	size_t bytes;
	unsigned from[2],
	    to[2]; /* it lives in [from, to], and again in the second stretch if that is not empty: from > to */
	size_t at; /* set by arena_place: a multiple of 64 */
};

/* Largest first, each at the lowest place that is free while it lives. *end: bytes of the whole, a multiple of 64; false if they are too
 * many to count. */
bool arena_place(struct arena_item *items, size_t count, size_t *end);

#endif
