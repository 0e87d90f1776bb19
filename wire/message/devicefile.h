#ifndef DEVICEFILE_H
#define DEVICEFILE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/*
 * Files that a device keeps of a job from round to round (FORMAT.md, "Files of a device"): a head, a body of `count` units, and the
 * SHA-256 of both.
 */
#define DEVICEFILE_HASH 32
#define DEVICEFILE_HEAD_MAX 64

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
uint64_t devicefile_bytes(enum devicefile_kind kind, uint64_t count);
/* Its head: devicefile_head bytes. The hash goes behind the body. */
void devicefile_encode(const struct devicefile *in, uint8_t *head);
/* The head of a file of `len` bytes, of which `head` has the first DEVICEFILE_HEAD_MAX, or all. ERR_CORRUPT unless it is of one of the
 * kinds, reserved bytes are zero and the file is as long as it says; whether its hash is right is for the caller to see. */
ERR_MUST_USE enum err devicefile_decode(
    struct devicefile *out, const void *head, uint64_t len, struct why *why);

#endif
