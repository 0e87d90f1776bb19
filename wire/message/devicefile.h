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
	DEVICEFILE_LOCAL, /* RVL1: the values of tensors that never leave the device; bytes */
	DEVICEFILE_KEPT, /* RVK1: what a trainer program of the owner's keeps between tasks; bytes of a model file */
};

struct devicefile {
	enum devicefile_kind kind;
	uint64_t count;
	uint64_t round; /* variate, kept */
	uint8_t job[16], task[16]; /* residual, kept */
	/* Kept: which program made the file, for which task and model. */
	uint64_t serial; /* rises with each kept file that the device makes for the job */
	uint8_t base[32]; /* id of the model that the task began with */
	uint8_t table[32]; /* hash of that model's tensor table: names, types and shapes */
	char trainer[DEVICEFILE_NAME_MAX];
	/* Local: written by a version whose files had no hash at the end. devicefile_encode ignores this member. */
	bool unhashed;
};

/* Bytes of a head, behind which the body lies. A multiple of 8. */
size_t devicefile_head(enum devicefile_kind kind);
/* The word of a kind: "residual", "variate", "local", "kept". */
const char *devicefile_name(enum devicefile_kind kind);
/* Bytes of a whole file with a body of `count` units; 0 if `count` is too large for any file. */
uint64_t devicefile_bytes(enum devicefile_kind kind, uint64_t count);
/* Writes the head, devicefile_head bytes. The caller writes the body and, behind it, the hash. */
void devicefile_encode(const struct devicefile *in, uint8_t *head);
/* Reads the head of a file of `len` bytes; `head` has the file's first DEVICEFILE_HEAD_MAX bytes, or all of a shorter file. ERR_CORRUPT
 * unless the kind is known, reserved bytes are zero and the file is as long as the head says. The caller checks the hash. */
ERR_MUST_USE enum err devicefile_decode(
    struct devicefile *out, const void *head, uint64_t len, struct why *why);

#endif
