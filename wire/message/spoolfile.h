#ifndef SPOOLFILE_H
#define SPOOLFILE_H
#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "manifest.h"

/*
 * The head of a file in the coordinator's spool: 512 bytes, layout in FORMAT.md. The delta's body (leaves, then payload) follows
 * the head, so that a file can be checked alone. The daemon makes and checks `tag`.
 */
#define SPOOLFILE_HEAD 512
#define SPOOLFILE_TAGGED 480 /* the tag covers the bytes before it */
#define SPOOLFILE_NONCE 12
#define SPOOLFILE_KEY_ID 8

struct spoolfile {
	bool sealed; /* the body is encrypted */
	uint8_t nonce[SPOOLFILE_NONCE]; /* zero unless sealed */
	uint8_t key_id[SPOOLFILE_KEY_ID]; /* which key; zero unless sealed */
	uint8_t manifest[MANIFEST_LEN];
	uint8_t tag[32];
};

/* ERR_INVALID unless len is SPOOLFILE_HEAD, magic, version and length are right, reserved bytes are zero and the manifest
 * decodes; ERR_UNSUPPORTED for a later version. */
ERR_MUST_USE enum err spoolfile_decode(
    struct spoolfile *out, const void *data, size_t len, struct why *why);
/* The first SPOOLFILE_TAGGED bytes are then to be tagged; put the tag behind them. */
void spoolfile_encode(uint8_t out[SPOOLFILE_HEAD], const struct spoolfile *in);
/* Length of a whole spool file for a payload of at most MANIFEST_PAYLOAD_MAX bytes. */
uint64_t spoolfile_bytes(uint64_t payload_bytes);

#endif
