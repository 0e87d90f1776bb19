#include "merkle.h"

#include <stdlib.h>
#include <string.h>

void
merkle_leaf_start(struct hash *h)
{
	static const uint8_t prefix = 0x00;

	hash_start(h);
	hash_update(h, &prefix, 1);
}

void
merkle_leaf_finish(struct hash *h, uint8_t out[HASH_LEN])
{
	hash_finish(h, out);
}

void
merkle_leaf(uint8_t out[HASH_LEN], const void *chunk, size_t len)
{
	struct hash *h = hash_new();

	if (!h)
		abort();
	merkle_leaf_start(h);
	hash_update(h, chunk, len);
	merkle_leaf_finish(h, out);
	hash_free(h);
}

static void
node(uint8_t out[HASH_LEN], const uint8_t *left, const uint8_t *right)
{
	uint8_t both[1 + 2 * HASH_LEN];

	both[0] = 0x01;
	memcpy(both + 1, left, HASH_LEN);
	memcpy(both + 1 + HASH_LEN, right, HASH_LEN);
	hash_sha256(out, both, sizeof(both));
}

/*
 * RFC 6962 defines the tree from the root down. Built from the left it is a binary counter: after leaf i,
 * one finished subtree stands for each bit of i + 1, and a carry joins the two of equal size. What remains
 * at the end is joined from the right. So the depth, not the number of leaves, bounds the memory.
 */
void
merkle_root(uint8_t out[HASH_LEN], const uint8_t *leaves, size_t n)
{
	uint8_t stack[8 * sizeof(size_t)][HASH_LEN];
	size_t depth = 0;

	for (size_t i = 0; i < n; i++) {
		memcpy(stack[depth++], leaves + i * HASH_LEN, HASH_LEN);
		for (size_t carry = i; carry & 1; carry >>= 1) {
			depth--;
			node(stack[depth - 1], stack[depth - 1], stack[depth]);
		}
	}
	while (depth > 1) {
		depth--;
		node(stack[depth - 1], stack[depth - 1], stack[depth]);
	}
	if (depth == 1)
		memcpy(out, stack[0], HASH_LEN);
}
