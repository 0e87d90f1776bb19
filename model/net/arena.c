#include "arena.h"

#include <stdlib.h>

#include "num.h"

#define LINE ((size_t)64)

static bool
meet(const struct arena_item *a, const struct arena_item *b)
{
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < 2; k++)
			if (a->from[i] <= a->to[i] && b->from[k] <= b->to[k] &&
			    a->from[i] <= b->to[k] && b->from[k] <= a->to[i])
				return true;
	return false;
}

struct place {
	struct arena_item *item;
};

/* The lowest place from *at on where `item` meets none of those placed; they are walked until none is in the way. */
static bool
find_place(struct arena_item *item, const struct place *placed, size_t count)
{
	size_t end;
	bool moved = true;

	item->at = 0;
	while (moved) {
		moved = false;
		if (!num_add(item->at, item->bytes, &end))
			return false;
		for (size_t i = 0; i < count; i++) {
			const struct arena_item *other = placed[i].item;
			if (item->at < other->at + other->bytes && other->at < end &&
			    meet(item, other)) {
				item->at = other->at + other->bytes;
				moved = true;
				break;
			}
		}
	}
	return true;
}

static int
by_size(const void *a, const void *b)
{
	const struct arena_item *x = ((const struct place *)a)->item;
	const struct arena_item *y = ((const struct place *)b)->item;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x < y ? -1 : 1;
}

bool
arena_place(struct arena_item *items, size_t count, size_t *end)
{
	struct place *order = calloc(count + 1, sizeof(*order));
	bool fits = order != NULL;

	*end = 0;
	for (size_t i = 0; fits && i < count; i++) {
		fits = num_add(items[i].bytes, LINE - 1, &items[i].bytes);
		items[i].bytes &= ~(LINE - 1);
		order[i].item = &items[i];
	}
	if (fits)
		qsort(order, count, sizeof(*order), by_size);
	for (size_t i = 0; fits && i < count; i++) {
		struct arena_item *item = order[i].item;
		fits = find_place(item, order, i);
		size_t last = item->at + item->bytes;
		*end = fits && last > *end ? last : *end;
	}
	free(order);
	return fits;
}
