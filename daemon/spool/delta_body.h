#ifndef DELTA_BODY_H
#define DELTA_BODY_H
#include <stdbool.h>

#include "vectors.h"

/*
 * The check of a delta's body as it comes, in order: leaves against the signed root, chunks against their leaves, values through
 * the codec. No I/O. One thread at a time.
 */

/* What is known at a chunk's beginning: everything before it is good. */
struct delta_watermark {
	uint64_t at; /* of the body */
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

/* m stays the caller's and must live as long; its codec is known and its sizes were checked. ERR_NOMEM. */
ERR_MUST_USE enum err delta_body_init(struct delta_body *b, const struct manifest *m);
/* Harmless on a zeroed one. */
void delta_body_deinit(struct delta_body *b);
/* The next len bytes. Or a problem, with b->detail; then only delta_body_rewind may follow. */
enum problem_type delta_body_take(struct delta_body *b, const void *data, size_t len);
/* So far a body is taken in any case: the leaves, and the chunks in which its codec's table lies. */
uint64_t delta_body_seen(const struct delta_body *b);
/* With all of that taken and nothing else: what comes before the mark, which lies behind it, is known to be good. */
void delta_body_skip(struct delta_body *b, const struct delta_watermark *known);
/* Back to `good`; the next byte is that at good.at. */
void delta_body_rewind(struct delta_body *b);

#endif
