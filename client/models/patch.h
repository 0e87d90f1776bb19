#ifndef PATCH_H
#define PATCH_H
#include "difference.h"

/*
 * A new model file from one that is here and a file of differences, one behind the other (FORMAT.md: Difference). Tile by tile:
 * beside the head of the model it needs memory for three tiles, whatever the model. Files are the caller's; all calls block.
 */
#define PATCH_STEPS_MAX 64

struct patch {
	int fd; /* of the differences */
	struct difference steps[PATCH_STEPS_MAX];
	uint64_t at[PATCH_STEPS_MAX]; /* of their payloads in the file */
	size_t count;
};

/* Reads and checks the first `bytes` bytes of fd: differences that lead from one model id to another (32 bytes each). ERR_CORRUPT
 * if they are not that; ERR_UNSUPPORTED for a version or codec that this build does not handle. */
ERR_MUST_USE enum err patch_open(struct patch *p, int fd, uint64_t bytes, const uint8_t *from,
    const uint8_t *to, struct why *why);

struct patch_files {
	int base, out; /* the new file is written over from byte 0 on */
	const struct tensor_rule *rules; /* the job's roles */
	size_t rule_count;
};
/* Writes the new model file; *bytes is its length. What comes out is the model only if its hash says so: a base that is not
 * the model it should be is not noticed here. */
ERR_MUST_USE enum err patch_apply(
    const struct patch *p, const struct patch_files *files, uint64_t *bytes, struct why *why);

#endif
