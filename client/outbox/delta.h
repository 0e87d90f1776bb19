#ifndef DELTA_H
#define DELTA_H
#include "hash.h"
#include "manifest.h"
#include "messages.h"

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

struct delta {
	uint8_t manifest[MANIFEST_LEN];
	uint8_t *leaves;
	size_t leaves_len;
	uint8_t *payload;
	uint64_t payload_len;
};

/* values: `elements` >= 1 floats, after minus before; second: as many, or NULL for a delta of one vector. ERR_NUMERIC if one is not finite, ERR_UNSUPPORTED for a codec
 * of the job that this build does not know. The caller deinits *out. */
ERR_MUST_USE enum err delta_make(struct delta *out, const struct delta_facts *facts,
    const float *values, const float *second, uint64_t elements, const struct key *key,
    struct why *why);
/* Of a task that evaluates: a manifest, and nothing beside the report, which facts->report is. ERR_INVALID without one. */
ERR_MUST_USE enum err delta_evaluation(
    struct delta *out, const struct delta_facts *facts, const struct key *key, struct why *why);
/* The second vector as who gets the delta decodes it: `elements` floats. ERR_INVALID if there is none. */
ERR_MUST_USE enum err delta_second(const struct delta *d, float *out);
void delta_deinit(struct delta *d);

#endif
