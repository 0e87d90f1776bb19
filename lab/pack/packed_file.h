#ifndef PACKED_FILE_H
#define PACKED_FILE_H
#include "packed.h"

/* A packed data set that is being written: values as they come, then labels, names and head. */
struct packed_file {
	const char *to;
	char path[4096]; /* of the temporary file, "" if there is none */
	int fd;
	uint64_t at; /* bytes written */
	uint8_t *block; /* bytes not yet written */
	size_t held; /* number of bytes in block */
};

struct packed_end {
	const int32_t *labels; /* of the examples; NULL: targets are given */
	const float *targets;
	const int32_t *groups; /* NULL: none */
	const char *names; /* p->names_bytes bytes */
};

/* Begins a temporary file for `to`; the caller calls packed_file_close in either case. */
ERR_MUST_USE enum err packed_file_open(struct packed_file *f, const char *to, struct why *why);
ERR_MUST_USE enum err packed_file_put(
    struct packed_file *f, const void *data, size_t len, struct why *why);
/* Writes labels, groups, names, head and hash, and renames the file to its name. p->array.type and the counts must be those of the values
 * that were put. */
ERR_MUST_USE enum err packed_file_finish(struct packed_file *f, const struct packed *p,
    const struct packed_end *end, uint8_t hash[32], struct why *why);
/* Removes the temporary file unless packed_file_finish has renamed it. */
void packed_file_close(struct packed_file *f);
/* The SHA-256 of a packed file without the hash itself (PACKED_HASH_AT). */
ERR_MUST_USE enum err packed_file_hash(uint8_t out[32], const uint8_t *file, size_t len);

#endif
