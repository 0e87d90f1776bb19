#ifndef ARENA_H
#define ARENA_H
#include <stdbool.h>
#include <stddef.h>

/* Places arrays with limited lifetimes in one block of memory: two arrays that are never live at once may overlap. Pure. */
struct arena_item {
	size_t bytes;
	/* Live in [from[0], to[0]] and, unless from[1] > to[1], in [from[1], to[1]]. */
	unsigned from[2], to[2];
	size_t at; /* set by arena_place: a multiple of 64 */
};

/* Places the largest items first, each at the lowest offset that is free during its lifetime. *end: bytes of the whole block, a multiple of
 * 64. False if the bytes overflow size_t or memory is short. */
bool arena_place(struct arena_item *items, size_t count, size_t *end);

#endif
