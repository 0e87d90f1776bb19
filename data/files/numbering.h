#ifndef NUMBERING_H
#define NUMBERING_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "err.h"

/*
 * Numbers different texts from 0 in the order in which they are added: the classes or groups of a table, the words of a vocabulary.
 */
#define NUMBERING_BYTES_MAX (64u << 20)
#define NUMBERING_NONE UINT32_MAX

struct numbering {
	struct buf text;
	struct numbering_item {
		size_t at, len; /* bytes of `text`, followed by a zero byte */
	} * items;
	size_t count, room;
	uint32_t *slots; /* a hash table: numbers + 1; 0: free */
	size_t slot_count; /* a power of two */
};

void numbering_init(struct numbering *n);
void numbering_deinit(struct numbering *n);
/* The number of a text; NUMBERING_NONE if the text was not added. */
uint32_t numbering_find(const struct numbering *n, const char *text, size_t len);
/* The number of a text, which is added if need be. ERR_LIMIT beyond `most` texts or NUMBERING_BYTES_MAX, ERR_NOMEM. */
ERR_MUST_USE enum err numbering_add(
    struct numbering *n, const char *text, size_t len, size_t most, uint32_t *number);
const char *numbering_text(const struct numbering *n, size_t number);
/* rank[i] := place of text i among the sorted ones, by their bytes. The caller frees *rank. */
ERR_MUST_USE enum err numbering_sort(const struct numbering *n, uint32_t **rank);
/* All texts in the order of `rank` (NULL: of their numbers), each ended by a line feed; the caller frees *out. */
ERR_MUST_USE enum err numbering_join(const struct numbering *n, const uint32_t *rank, char **out);

#endif
