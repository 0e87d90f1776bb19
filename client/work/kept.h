#ifndef KEPT_H
#define KEPT_H
#include <limits.h>

#include "devicefile.h"

/* A file that this device keeps of a job (devicefile.h): open to be read, or being written. Never whole in memory. */
struct kept {
	struct devicefile file;
	int fd; /* -1: none is open */
};

/* Blocks on the disk, and reads all of it. ERR_NOTFOUND; ERR_CORRUPT: it is damaged, or of another kind. */
ERR_MUST_USE enum err kept_open(
    struct kept *k, enum devicefile_kind kind, const char *path, struct why *why);
/* Bytes of its body. */
ERR_MUST_USE enum err kept_read(const struct kept *k, void *out, size_t len, uint64_t at);
/* The body as floats, while *k lives. */
struct codec_elements kept_values(const struct kept *k);
void kept_close(struct kept *k);

/* One that is written: its body part by part, then it takes the place of an older one, durably. kept_new_deinit is due after kept_new
 * whatever comes, and removes what was not finished. */
struct kept_new {
	struct devicefile file;
	char path[PATH_MAX], temp[PATH_MAX];
	int fd;
	struct hash *hash;
	uint64_t at;
};
ERR_MUST_USE enum err kept_new(
    struct kept_new *k, const struct devicefile *file, const char *path, struct why *why);
ERR_MUST_USE enum err kept_new_add(
    struct kept_new *k, const void *data, size_t len, struct why *why);
ERR_MUST_USE enum err kept_new_finish(struct kept_new *k, struct why *why);
void kept_new_deinit(struct kept_new *k);
/* All of it, from values: file->count of them, which are floats. `path`'s directory is there. */
ERR_MUST_USE enum err kept_write(const struct devicefile *file, const struct codec_elements *values,
    const char *path, struct why *why);

#endif
