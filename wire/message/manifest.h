#ifndef MANIFEST_H
#define MANIFEST_H
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/*
 * The signed head of a delta, or of the report alone that an evaluation ends with: 320 bytes, little-endian, layout in FORMAT.md. This
 * file knows the layout and its own contradictions only; whether job, round, task, device and signature are right is the daemon's business.
 */
#define MANIFEST_LEN 320
#define MANIFEST_SIGNED 256 /* the signature covers SHA-256 of the first 256 bytes */
#define MANIFEST_CHUNK (1u << 20)
#define MANIFEST_PAYLOAD_MAX ((uint64_t)1 << 48)

enum manifest_flag {
	MANIFEST_CLIPPED = 1u << 0,
	MANIFEST_PARTIAL = 1u << 1,
	MANIFEST_MASKED = 1u << 2,
	MANIFEST_REPORT = 1u << 3,
	MANIFEST_SECOND = 1u << 4, /* a second vector of the same codec and length follows */
};
#define MANIFEST_KIND_SHIFT 8
#define MANIFEST_KIND_MASK 0xf00u

enum manifest_optimizer {
	MANIFEST_SGD = 0,
	MANIFEST_ADAM = 1,
	MANIFEST_ADAMW = 2,
	MANIFEST_EXTERNAL = 65535
};

struct manifest {
	uint8_t job[16];
	uint64_t round;
	uint8_t base[32];
	uint8_t device[32];
	uint8_t task[16];
	uint64_t examples;
	uint64_t steps;
	uint64_t elements;
	uint64_t payload_bytes;
	uint8_t root[32];
	uint16_t codec;
	uint16_t optimizer;
	uint32_t flags;
	uint32_t block;
	float normaliser;
	uint64_t made_at_ms;
	float loss;
	float accuracy; /* NaN if none */
	float norm;
	uint32_t slice;
	uint64_t codec_seed;
	uint8_t report_hash[32];
	uint8_t signature[64];
};

/* ERR_INVALID unless len is MANIFEST_LEN, magic, version and length are right, reserved bits are zero, and the
 * fields do not contradict themselves: payload_bytes, elements and steps >= 1; normaliser and norm finite and not
 * negative; loss finite; accuracy NaN or 0..1; a known optimizer; report_hash zero iff no report flag. ERR_LIMIT for a
 * payload past MANIFEST_PAYLOAD_MAX. Of kind evaluate instead: a report, no flag beside it, and zero in all that tells of a delta
 * (steps to root, codec to codec_seed but for flags and made_at_ms). examples, round and codec are NOT checked: they have errors of their
 * own in the daemon; nor are kinds that are not known. */
ERR_MUST_USE enum err manifest_decode(
    struct manifest *out, const void *data, size_t len, struct why *why);
/* The kind of task that the manifest answers; TASK_UNKNOWN for a kind that this version does not know. */
enum task_kind manifest_kind(const struct manifest *m);
/* The first MANIFEST_SIGNED bytes are then to be signed; put the signature into out + MANIFEST_SIGNED. */
void manifest_encode(uint8_t out[MANIFEST_LEN], const struct manifest *in);

/* Number of 1 MiB chunks of the payload, and length of the whole body (leaves and payload);
 * payload_bytes is at most MANIFEST_PAYLOAD_MAX. */
uint64_t manifest_chunks(uint64_t payload_bytes);
uint64_t manifest_body_bytes(uint64_t payload_bytes);

#define RECEIPT_LEN 160
#define RECEIPT_SIGNED 96

struct receipt {
	uint8_t job[16];
	uint64_t round;
	uint8_t manifest_hash[32]; /* SHA-256 of manifest bytes 0..255 */
	uint64_t accepted_at_ms;
	uint64_t incarnation;
	uint8_t signature[64];
};

/* ERR_INVALID unless length, magic, version and the zero bytes are right. */
ERR_MUST_USE enum err manifest_receipt_decode(
    struct receipt *out, const void *data, size_t len, struct why *why);
/* As manifest_encode: the first RECEIPT_SIGNED bytes are to be signed. */
void manifest_receipt_encode(uint8_t out[RECEIPT_LEN], const struct receipt *in);

#endif
