#ifndef NAMES_H
#define NAMES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "err.h"

/*
 * Different texts, numbered in the order in which they came: the classes or groups of a table, the words of a vocabulary.
 */
#define NAMES_BYTES_MAX (64u << 20)
#define NAMES_NONE UINT32_MAX

struct names {
	struct buf text;
	struct names_item {
		size_t at, len; /* in text, a zero byte behind it */
	} * items;
	size_t count, room;
	uint32_t *slots; /* a hash table: numbers + 1; 0: free */
	size_t slot_count; /* a power of two */
};

void names_init(struct names *n);
void names_deinit(struct names *n);
/* NAMES_NONE if it is not there. */
uint32_t names_find(const struct names *n, const char *text, size_t len);
/* Its number, after it was added if it was not there. ERR_LIMIT beyond `most` texts or NAMES_BYTES_MAX, ERR_NOMEM. */
ERR_MUST_USE enum err names_add(
    struct names *n, const char *text, size_t len, size_t most, uint32_t *number);
const char *names_text(const struct names *n, size_t number);
/* rank[i] := place of text i among the sorted ones, by their bytes. The caller frees *rank. */
ERR_MUST_USE enum err names_sort(const struct names *n, uint32_t **rank);
/* All texts in the order of `rank` (NULL: their own), each ended by a line feed; the caller frees *out. */
ERR_MUST_USE enum err names_join(const struct names *n, const uint32_t *rank, char **out);

#endif
