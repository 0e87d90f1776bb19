#ifndef DELTA_BODY_H
#define DELTA_BODY_H
#include <stdbool.h>

#include "vectors.h"

/*
 * The check of a delta's body as it comes, in order: leaves against the signed root, chunks against their leaves, values through
 * the codec. No I/O. One thread at a time.
 */

/* The state of the check where a chunk begins: all bytes of the body before it are good. */
struct delta_watermark {
	uint64_t at; /* offset in the body */
	double sum_squares;
	uint8_t carry[64];
};

struct delta_body {
	const struct manifest *m;
	struct vectors vectors;
	struct hash *hash;
	uint8_t *leaves;
	uint64_t leaf_bytes, bytes;
	uint64_t table_bytes; /* of the codec's table, 0 without one */
	struct delta_watermark now, good; /* good.at is 0, or the leaves' end and k chunks */
	char detail[64]; /* of a refusal */
};

/* m stays the caller's and must live as long as *b; its codec is known and its sizes were checked. ERR_NOMEM; then, too,
 * delta_body_deinit. */
ERR_MUST_USE enum err delta_body_init(struct delta_body *b, const struct manifest *m);
/* Frees what *b holds; harmless if *b is zeroed. */
void delta_body_deinit(struct delta_body *b);
/* Checks the next len bytes of the body. Returns PROBLEM_NONE, or a problem, with b->detail; then only delta_body_rewind may follow. */
enum problem_type delta_body_take(struct delta_body *b, const void *data, size_t len);
/* Bytes of the body that delta_body_take must always see: the leaves, and the chunks that hold the codec's table. */
uint64_t delta_body_seen(const struct delta_body *b);
/* After exactly delta_body_seen bytes were taken: skips to `known`, a mark behind them that earlier checks have found good. */
void delta_body_skip(struct delta_body *b, const struct delta_watermark *known);
/* Goes back to b->good; the next byte to be taken is the one at good.at. */
void delta_body_rewind(struct delta_body *b);

#endif
