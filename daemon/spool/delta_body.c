#include "delta_body.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merkle.h"
#include "problem.h"

enum err
delta_body_init(struct delta_body *b, const struct manifest *m)
{
	*b = (struct delta_body){.m = m,
	    .vectors = vectors_of(m),
	    .leaf_bytes = manifest_chunks(m->payload_bytes) * HASH_LEN,
	    .bytes = manifest_body_bytes(m->payload_bytes)};
	b->leaves = malloc(b->leaf_bytes);
	b->table_bytes = codec_table_bytes(b->vectors.codec, m->elements);
	b->vectors.params.table = malloc((size_t)b->table_bytes + 1);
	b->hash = hash_new();
	return b->leaves && b->vectors.params.table && b->hash ? ERR_OK : ERR_NOMEM;
}

void
delta_body_deinit(struct delta_body *b)
{
	hash_free(b->hash);
	free(b->leaves);
	free(b->vectors.params.table);
	b->hash = NULL;
	b->leaves = b->vectors.params.table = NULL;
}

static enum problem_type
refuse(struct delta_body *b, enum problem_type problem, const char *detail)
{
	snprintf(b->detail, sizeof(b->detail), "%s", detail);
	return problem;
}

static enum problem_type
take_leaves(struct delta_body *b, const uint8_t *p, size_t len)
{
	uint8_t root[HASH_LEN];

	memcpy(b->leaves + b->now.at, p, len);
	b->now.at += len;
	if (b->now.at < b->leaf_bytes)
		return PROBLEM_NONE;
	merkle_root(root, b->leaves, b->leaf_bytes / HASH_LEN);
	if (!hash_equal(root, b->m->root, HASH_LEN))
		return refuse(b, PROBLEM_WRONG_ROOT, "the leaf hashes do not make the signed root");
	b->good = b->now;
	merkle_leaf_start(b->hash);
	return PROBLEM_NONE;
}

/* The chunk that ends at now.at is complete: it must be the one its leaf promises. */
static enum problem_type
end_chunk(struct delta_body *b)
{
	uint64_t chunk = (b->now.at - b->leaf_bytes - 1) / MANIFEST_CHUNK;
	uint8_t leaf[HASH_LEN];

	merkle_leaf_finish(b->hash, leaf);
	if (!hash_equal(leaf, b->leaves + chunk * HASH_LEN, HASH_LEN)) {
		snprintf(b->detail, sizeof(b->detail), "chunk %llu", (unsigned long long)chunk);
		return PROBLEM_WRONG_CHUNK;
	}
	/* The last chunk is no mark: what is taken up again always has a byte left to come. */
	if (b->now.at < b->bytes)
		b->good = b->now;
	merkle_leaf_start(b->hash);
	return PROBLEM_NONE;
}

/* Takes bytes of the payload that all lie in one chunk. */
static enum problem_type
take_piece(struct delta_body *b, const uint8_t *p, size_t len)
{
	uint64_t at = b->now.at - b->leaf_bytes;
	enum err e = vectors_check(&b->vectors, at, p, len, &b->now.sum_squares, b->now.carry);

	if (e == ERR_NUMERIC)
		return refuse(b, PROBLEM_NOT_FINITE, "the payload holds NaN or infinity");
	if (e)
		return refuse(b, PROBLEM_BAD_REQUEST, "the payload is not in its codec's form");
	hash_update(b->hash, p, len);
	b->now.at += len;
	at += len;
	return at % MANIFEST_CHUNK == 0 || b->now.at == b->bytes ? end_chunk(b) : PROBLEM_NONE;
}

enum problem_type
delta_body_take(struct delta_body *b, const void *data, size_t len)
{
	const uint8_t *p = data;
	enum problem_type problem = PROBLEM_NONE;

	while (len > 0 && !problem) {
		bool leaf = b->now.at < b->leaf_bytes;
		uint64_t room = leaf
		    ? b->leaf_bytes - b->now.at
		    : MANIFEST_CHUNK - (b->now.at - b->leaf_bytes) % MANIFEST_CHUNK;
		size_t n = len < room ? len : (size_t)room;
		if (n > b->bytes - b->now.at)
			return refuse(
			    b, PROBLEM_WRONG_LENGTH, "the body is longer than its manifest says");
		problem = leaf ? take_leaves(b, p, n) : take_piece(b, p, n);
		p += n;
		len -= n;
	}
	return problem;
}

void
delta_body_rewind(struct delta_body *b)
{
	b->now = b->good;
	if (b->now.at >= b->leaf_bytes)
		merkle_leaf_start(b->hash);
}

uint64_t
delta_body_seen(const struct delta_body *b)
{
	uint64_t chunks = b->table_bytes / MANIFEST_CHUNK + (b->table_bytes % MANIFEST_CHUNK != 0);

	return b->leaf_bytes + chunks * MANIFEST_CHUNK;
}

void
delta_body_skip(struct delta_body *b, const struct delta_watermark *known)
{
	b->good = *known;
	delta_body_rewind(b);
}
