#ifndef DEVICEFILE_H
#define DEVICEFILE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/*
 * Files that a device keeps of a job from round to round (FORMAT.md, "Files of a device"): a head, a body of `count` units, and the
 * SHA-256 of both. The whole file is in memory; wire/ hashes nothing, so `hash` comes from the caller.
 */
#define DEVICEFILE_HASH 32

enum devicefile_kind {
	DEVICEFILE_RESIDUAL, /* RVE1: what encoding took from the job's deltas; f32 */
	DEVICEFILE_VARIATE, /* RVV1: the device's control variate; f32 */
	DEVICEFILE_LOCAL, /* RVL1: the values of tensors that never leave it; bytes */
};

struct devicefile {
	enum devicefile_kind kind;
	uint64_t count;
	uint64_t round; /* variate */
	uint8_t job[16], task[16]; /* residual */
	/* Local: from before it ended with a hash. devicefile_encode pays no heed to it. */
	bool unhashed;
};

/* Bytes of a head, behind which the body lies. A multiple of 8. */
size_t devicefile_head(enum devicefile_kind kind);
/* Bytes of a whole file; 0 if there can be none of that size. */
size_t devicefile_bytes(enum devicefile_kind kind, uint64_t count);
/* Head and hash around a body that is in its place. data: devicefile_bytes of them. */
void devicefile_encode(const struct devicefile *in, uint8_t *data,
    void (*hash)(uint8_t out[DEVICEFILE_HASH], const void *data, size_t len));
/* ERR_CORRUPT unless it is a whole file of one of the kinds, reserved bytes are zero and its hash is right. */
ERR_MUST_USE enum err devicefile_decode(struct devicefile *out, const void *data, size_t len,
    void (*hash)(uint8_t out[DEVICEFILE_HASH], const void *data, size_t len), struct why *why);

#endif
