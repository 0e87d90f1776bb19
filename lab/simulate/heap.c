#include "heap.h"

#include <stdlib.h>

#include "bytes.h"

static bool
before(const struct simulate_event *a, const struct simulate_event *b)
{
	if (a->us != b->us)
		return a->us < b->us;
	if (a->kind != b->kind)
		return a->kind < b->kind;
	return a->device < b->device;
}

enum err
simulate_heap_add(struct simulate_heap *h, const struct simulate_event *e)
{
	void *grown = bytes_grow(h->items, h->count, &h->room, sizeof(*h->items));
	size_t at = h->count;

	if (!grown)
		return ERR_NOMEM;
	h->items = grown;
	h->count++;
	while (at > 0 && before(e, &h->items[(at - 1) / 2])) {
		h->items[at] = h->items[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	h->items[at] = *e;
	return ERR_OK;
}

bool
simulate_heap_take(struct simulate_heap *h, struct simulate_event *out)
{
	size_t at = 0;

	if (h->count == 0)
		return false;
	*out = h->items[0];
	const struct simulate_event last = h->items[--h->count];
	for (size_t child; (child = 2 * at + 1) < h->count; at = child) {
		if (child + 1 < h->count && before(&h->items[child + 1], &h->items[child]))
			child++;
		if (!before(&h->items[child], &last))
			break;
		h->items[at] = h->items[child];
	}
	h->items[at] = last;
	return true;
}

uint64_t
simulate_heap_next(const struct simulate_heap *h)
{
	return h->count > 0 ? h->items[0].us : UINT64_MAX;
}

void
simulate_heap_deinit(struct simulate_heap *h)
{
	free(h->items);
	*h = (struct simulate_heap){.count = 0};
}
