#ifndef KEPT_H
#define KEPT_H
#include <limits.h>

#include "devicefile.h"

/* A file that this device keeps of a job (devicefile.h), open for reading; never whole in memory. */
struct kept {
	struct devicefile file;
	int fd; /* -1: none is open */
};

/* Opens a file and checks all of it; blocks on the disk. ERR_NOTFOUND; ERR_CORRUPT: the file is damaged, or of another kind. */
ERR_MUST_USE enum err kept_open(
    struct kept *k, enum devicefile_kind kind, const char *path, struct why *why);
/* Reads len bytes of the body from byte `at` on. */
ERR_MUST_USE enum err kept_read(const struct kept *k, void *out, size_t len, uint64_t at);
/* The body as floats; *k must outlive the result. */
struct codec_elements kept_values(const struct kept *k);
void kept_close(struct kept *k);

/* A kept file that is being written: its body part by part; kept_new_finish then puts it in the place of an older file, durably.
 * kept_new_deinit is due after kept_new in every case, and removes an unfinished file. */
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
/* Writes a whole kept file with the body of file->count floats from `values`. The directory of `path` must exist. */
ERR_MUST_USE enum err kept_write(const struct devicefile *file, const struct codec_elements *values,
    const char *path, struct why *why);

#endif
