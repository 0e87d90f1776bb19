#include "bases.h"

#include <string.h>

void
bases_add(struct bases *b, const struct base *newer)
{
	if (b->count == BASES_MAX)
		bases_forget(b, b->items[0].round + 1);
	b->items[b->count++] = *newer;
}

void
bases_forget(struct bases *b, uint64_t before)
{
	uint32_t old = 0;

	while (old < b->count && b->items[old].round < before)
		old++;
	b->count -= old;
	memmove(b->items, b->items + old, b->count * sizeof(*b->items));
}

void
bases_branch(struct bases *b, const uint8_t model[32])
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < b->count; i++)
		if (memcmp(b->items[i].model, model, 32) == 0)
			b->items[kept++] = b->items[i];
	b->count = kept;
}

const struct base *
bases_find(const struct bases *b, uint64_t round)
{
	for (uint32_t i = 0; i < b->count; i++)
		if (b->items[i].round == round)
			return &b->items[i];
	return NULL;
}

uint64_t
bases_measured(const struct base_answers *all, size_t count, uint64_t last, uint32_t quorum)
{
	uint64_t newest = 0;

	for (size_t i = 0; i < count; i++)
		if (all[i].count >= quorum && all[i].round > last && all[i].round > newest)
			newest = all[i].round;
	return newest;
}
