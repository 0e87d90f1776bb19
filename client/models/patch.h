#ifndef PATCH_H
#define PATCH_H
#include "difference.h"

/*
 * Makes a new model file from an old one and a file of differences, one behind the other (FORMAT.md: Difference). Works tile by tile:
 * beside the model's head three tiles are in memory, whatever the model. Files are the caller's; all calls block.
 */
#define PATCH_STEPS_MAX 64

struct patch {
	int fd; /* the file of differences */
	struct difference steps[PATCH_STEPS_MAX];
	uint64_t at[PATCH_STEPS_MAX]; /* where each payload begins in the file */
	size_t count;
};

/* Reads and checks the first `bytes` bytes of fd: differences that lead from model id `from` to `to` (32 bytes each). ERR_CORRUPT
 * if they do not; ERR_UNSUPPORTED for a version or codec that this build does not handle. */
ERR_MUST_USE enum err patch_open(struct patch *p, int fd, uint64_t bytes, const uint8_t *from,
    const uint8_t *to, struct why *why);

struct patch_files {
	int base, out; /* base: the old model; out: written from byte 0 on */
	const struct tensor_rule *rules; /* the job's roles */
	size_t rule_count;
};
/* Writes the new model file; *bytes is its length. The caller must check the file's hash: a wrong base is not noticed
 * here. */
ERR_MUST_USE enum err patch_apply(
    const struct patch *p, const struct patch_files *files, uint64_t *bytes, struct why *why);

#endif
