#ifndef DELTA_H
#define DELTA_H
#include "manifest.h"
#include "vectors.h"

/* From the difference of two weight vectors to bytes that may be sent: codec, hash tree, manifest, signature. */

struct key;

struct delta_facts {
	const struct task *task;
	const uint8_t *device; /* 32 bytes */
	uint64_t examples, steps;
	double loss, accuracy; /* accuracy NaN if none */
	double normaliser;
	uint16_t optimizer; /* enum manifest_optimizer */
	bool partial;
	const char *report; /* text, NULL without one */
	size_t report_len;
	uint64_t made_at_ms;
};

/* The vectors to encode, and where the payload goes. */
struct delta_input {
	const struct codec_elements *values; /* after minus before; may set `why` when it fails */
	const struct codec_elements *second; /* NULL for a delta of one vector */
	uint64_t elements; /* of each, at least 1 */
	int fd; /* to be read and written */
	uint64_t at; /* where the body begins: leaves, and the payload behind them */
};

/* A finished delta; only its payload is in the file, the rest in memory. */
struct delta {
	uint8_t manifest[MANIFEST_LEN];
	uint8_t *leaves;
	size_t leaves_len;
	int fd;
	uint64_t payload_at, payload_len;
};

/* The fewest bytes of the body of the task's delta: with a codec of fixed size exactly its bytes, else 0. */
uint64_t delta_least(const struct task *task, uint64_t elements, bool second);
/* Encodes, hashes and signs a delta in O(1) memory beside the leaves. ERR_NUMERIC if a value is not finite, ERR_UNSUPPORTED for a codec of
 * the job that this build does not know, ERR_INVALID also for values that changed meanwhile, ERR_NOSPACE, ... The caller deinits *out. */
ERR_MUST_USE enum err delta_make(struct delta *out, const struct delta_facts *facts,
    const struct delta_input *in, const struct key *key, struct why *why);
/* For a task that evaluates: makes and signs a manifest for the report facts->report, without a body. ERR_INVALID without a report. */
ERR_MUST_USE enum err delta_evaluation(
    struct delta *out, const struct delta_facts *facts, const struct key *key, struct why *why);
void delta_deinit(struct delta *d);

/* A vector of a delta as the coordinator will decode it. */
struct delta_decoded {
	const struct delta *delta;
	struct vectors vectors;
	unsigned which;
};
/* which: 0, or 1 for the second vector. ERR_INVALID if the delta does not have that vector. */
ERR_MUST_USE enum err delta_decoded(
    struct delta_decoded *out, const struct delta *d, unsigned which);
/* The decoded values; *d must outlive the result. */
struct codec_elements delta_decoded_values(const struct delta_decoded *d);

#endif
