#ifndef MERKLE_H
#define MERKLE_H
#include <stddef.h>
#include <stdint.h>

#include "hash.h"

/*
 * The RFC 6962 hash tree over chunks of a payload: leaf SHA-256(0x00 || chunk), node
 * SHA-256(0x01 || left || right), an odd level splitting at the largest power of two below its size.
 */

/* Begins / ends a leaf on a running hash; feed the chunk with hash_update in between. */
void merkle_leaf_start(struct hash *h);
void merkle_leaf_finish(struct hash *h, uint8_t out[HASH_LEN]);
void merkle_leaf(uint8_t out[HASH_LEN], const void *chunk, size_t len);
/* Root of n >= 1 leaves of HASH_LEN bytes each, in order. */
void merkle_root(uint8_t out[HASH_LEN], const uint8_t *leaves, size_t n);

#endif
