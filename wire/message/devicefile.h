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
#define DEVICEFILE_HEAD_MAX 192
#define DEVICEFILE_NAME_MAX 64

enum devicefile_kind {
	DEVICEFILE_RESIDUAL, /* RVE1: what encoding took from the job's deltas; f32 */
	DEVICEFILE_VARIATE, /* RVV1: the device's control variate; f32 */
	DEVICEFILE_LOCAL, /* RVL1: the values of tensors that never leave it; bytes */
	DEVICEFILE_KEPT, /* RVK1: what a program of the owner's keeps of its own; bytes of a model file */
};

struct devicefile {
	enum devicefile_kind kind;
	uint64_t count;
	uint64_t round; /* variate, kept */
	uint8_t job[16], task[16]; /* residual, kept */
	/* Kept: by which program, and to what it belongs. */
	uint64_t serial; /* rises with each that a device makes of the job */
	uint8_t base[32]; /* id of the model that the task began with */
	uint8_t table[32]; /* hash of that model's tensor table: names, types and shapes */
	char trainer[DEVICEFILE_NAME_MAX];
	/* Local: from before it ended with a hash. devicefile_encode pays no heed to it. */
	bool unhashed;
};

/* Bytes of a head, behind which the body lies. A multiple of 8. */
size_t devicefile_head(enum devicefile_kind kind);
/* Its word: "residual", "variate", "local", "kept". */
const char *devicefile_name(enum devicefile_kind kind);
/* Bytes of a whole file; 0 if there can be none of that size. */
uint64_t devicefile_bytes(enum devicefile_kind kind, uint64_t count);
/* Its head: devicefile_head bytes. The hash goes behind the body. */
void devicefile_encode(const struct devicefile *in, uint8_t *head);
/* The head of a file of `len` bytes, of which `head` has the first DEVICEFILE_HEAD_MAX, or all. ERR_CORRUPT unless it is of one of the
 * kinds, reserved bytes are zero and the file is as long as it says; whether its hash is right is for the caller to see. */
ERR_MUST_USE enum err devicefile_decode(
    struct devicefile *out, const void *head, uint64_t len, struct why *why);

#endif
