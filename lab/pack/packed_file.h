#ifndef PACKED_FILE_H
#define PACKED_FILE_H
#include "packed.h"

/* A packed set being written: values as they come, then what is known at the end. */
struct packed_file {
	const char *to;
	char path[4096]; /* the temporary file's, "" if there is none */
	int fd;
	uint64_t at;
	uint8_t *block; /* not yet written */
	size_t held;
};

struct packed_end {
	const int32_t *labels; /* or */
	const float *targets;
	const int32_t *groups; /* NULL: none */
	const char *names; /* of p->names_bytes */
};

/* packed_file_close in either case. */
ERR_MUST_USE enum err packed_file_open(struct packed_file *f, const char *to, struct why *why);
ERR_MUST_USE enum err packed_file_put(
    struct packed_file *f, const void *data, size_t len, struct why *why);
/* p->array.type and the counts must be those of what was put. Puts labels, groups, names, head and hash, and the file in its place. */
ERR_MUST_USE enum err packed_file_finish(struct packed_file *f, const struct packed *p,
    const struct packed_end *end, uint8_t hash[32], struct why *why);
/* Removes what is not finished. */
void packed_file_close(struct packed_file *f);
/* SHA-256 as PACKED_HASH_AT says. */
ERR_MUST_USE enum err packed_file_hash(uint8_t out[32], const uint8_t *file, size_t len);

#endif
