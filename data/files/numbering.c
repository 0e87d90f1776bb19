#include "numbering.h"

#include <stdlib.h>
#include <string.h>

void
numbering_init(struct numbering *n)
{
	*n = (struct numbering){.count = 0};
	buf_init(&n->text, NUMBERING_BYTES_MAX);
}

void
numbering_deinit(struct numbering *n)
{
	buf_deinit(&n->text);
	free(n->items);
	free(n->slots);
	*n = (struct numbering){.count = 0};
}

/* FNV-1a. */
static uint64_t
hash(const char *text, size_t len)
{
	uint64_t h = 0xcbf29ce484222325;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)text[i]) * 0x100000001b3;
	return h ^ h >> 32;
}

const char *
numbering_text(const struct numbering *n, size_t number)
{
	return n->text.data + n->items[number].at;
}

/* The slot of the text, or the free one where it would go. */
static uint32_t *
find_slot(const struct numbering *n, const char *text, size_t len)
{
	size_t i = (size_t)hash(text, len) & (n->slot_count - 1);

	for (;; i = (i + 1) & (n->slot_count - 1)) {
		uint32_t *slot = &n->slots[i];
		if (*slot == 0)
			return slot;
		const struct numbering_item *item = &n->items[*slot - 1];
		if (item->len == len && memcmp(n->text.data + item->at, text, len) == 0)
			return slot;
	}
}

uint32_t
numbering_find(const struct numbering *n, const char *text, size_t len)
{
	if (n->count == 0)
		return NUMBERING_NONE;
	uint32_t slot = *find_slot(n, text, len);
	return slot ? slot - 1 : NUMBERING_NONE;
}

/* Half of the slots stay free. */
static enum err
grow(struct numbering *n)
{
	size_t room = n->room > 0 ? n->room * 2 : 16;
	void *items = realloc(n->items, room * sizeof(*n->items));

	if (!items)
		return ERR_NOMEM;
	n->items = items;
	uint32_t *slots = calloc(room * 2, sizeof(*slots));
	if (!slots)
		return ERR_NOMEM;
	free(n->slots);
	n->slots = slots;
	n->slot_count = room * 2;
	n->room = room;
	for (size_t i = 0; i < n->count; i++)
		*find_slot(n, numbering_text(n, i), n->items[i].len) = (uint32_t)i + 1;
	return ERR_OK;
}

enum err
numbering_add(struct numbering *n, const char *text, size_t len, size_t most, uint32_t *number)
{
	*number = numbering_find(n, text, len);
	if (*number != NUMBERING_NONE)
		return ERR_OK;
	if (n->count >= most)
		return ERR_LIMIT;
	enum err e = n->count == n->room ? grow(n) : ERR_OK;
	size_t at = n->text.len;
	if (!e)
		e = buf_append(&n->text, text, len);
	if (!e)
		e = buf_append(&n->text, "", 1);
	if (e)
		return e;
	uint32_t *slot = find_slot(n, text, len);
	*number = (uint32_t)n->count;
	n->items[n->count++] = (struct numbering_item){.at = at, .len = len};
	*slot = (uint32_t)n->count;
	return ERR_OK;
}

struct sortable {
	const char *text;
	uint32_t number;
};

static int
compare(const void *a, const void *b)
{
	return strcmp(((const struct sortable *)a)->text, ((const struct sortable *)b)->text);
}

enum err
numbering_sort(const struct numbering *n, uint32_t **rank)
{
	struct sortable *all = calloc(n->count + 1, sizeof(*all));

	*rank = calloc(n->count + 1, sizeof(**rank));
	if (!all || !*rank) {
		free(all);
		free(*rank);
		*rank = NULL;
		return ERR_NOMEM;
	}
	for (size_t i = 0; i < n->count; i++)
		all[i] = (struct sortable){numbering_text(n, i), (uint32_t)i};
	qsort(all, n->count, sizeof(*all), compare);
	for (size_t i = 0; i < n->count; i++)
		(*rank)[all[i].number] = (uint32_t)i;
	free(all);
	return ERR_OK;
}

enum err
numbering_join(const struct numbering *n, const uint32_t *rank, char **out)
{
	uint32_t *order = calloc(n->count + 1, sizeof(*order));
	char *to = malloc(n->text.len + 1);

	*out = to;
	if (!order || !to) {
		free(order);
		free(to);
		return ERR_NOMEM;
	}
	for (size_t i = 0; i < n->count; i++)
		order[rank ? rank[i] : i] = (uint32_t)i;
	for (size_t i = 0; i < n->count; i++) {
		const struct numbering_item *item = &n->items[order[i]];
		memcpy(to, n->text.data + item->at, item->len);
		to += item->len;
		*to++ = '\n';
	}
	*to = '\0';
	free(order);
	return ERR_OK;
}
