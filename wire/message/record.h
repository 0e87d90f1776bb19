#ifndef RECORD_H
#define RECORD_H
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/*
 * One entry of the audit chain: 256 bytes, little-endian, layout in FORMAT.md. An entry commits to a body (JSON text) by
 * its hash, and to the entry before by the hash of that entry's signed bytes. This file knows the layout only; whoever reads a
 * chain checks hashes, signatures and the order of entries.
 */
#define RECORD_LEN 256
#define RECORD_SIGNED 192 /* the signature covers SHA-256 of the first 192 bytes */
#define RECORD_BODY_MAX (16u << 20)
#define RECORD_DETAIL_MAX (2u << 20) /* one detail: a job document at most */
#define RECORD_SALT 32

struct record {
	uint64_t seq; /* from 1, without gaps */
	uint64_t at_ms;
	uint64_t incarnation;
	uint8_t previous[32]; /* SHA-256 of the signed bytes of entry seq - 1; zero for the first */
	uint8_t body_hash[32]; /* SHA-256 of the body's text */
	uint8_t job[16]; /* zero unless the body is about a job */
	uint64_t round; /* 0 unless it is about a round */
	uint8_t signature[64];
};

/* ERR_INVALID unless length, magic, version and the zero bytes are right and seq is at least 1. */
ERR_MUST_USE enum err record_decode(
    struct record *out, const void *data, size_t len, struct why *why);
/* The first RECORD_SIGNED bytes are then to be signed; put the signature into out + RECORD_SIGNED. */
void record_encode(uint8_t out[RECORD_LEN], const struct record *in);

#endif
