#ifndef KEPT_H
#define KEPT_H
#include "devicefile.h"

/* A file that this device keeps of a job (devicefile.h), whole in memory. */
struct kept {
	struct devicefile file;
	uint8_t *data; /* NULL without; kept_deinit frees it */
	size_t len;
};

/* An empty one of file->kind and file->count, its body zeros. ERR_LIMIT, ERR_NOMEM. */
ERR_MUST_USE enum err kept_init(struct kept *k, const struct devicefile *file);
void kept_deinit(struct kept *k);
/* Blocks on the disk. ERR_NOTFOUND; ERR_CORRUPT: it is damaged, or of another kind. Holds nothing on failure. */
ERR_MUST_USE enum err kept_read(
    struct kept *k, enum devicefile_kind kind, const char *path, struct why *why);
/* Durably, in place of an older one. */
ERR_MUST_USE enum err kept_write(const struct kept *k, const char *path, struct why *why);
/* Its body. */
void *kept_body(const struct kept *k);

#endif
