#ifndef USTAR_H
#define USTAR_H
#include <stddef.h>
#include <stdint.h>

#include "buf.h"

/*
 * A handful of small files in one, in memory: POSIX ustar (IEEE Std 1003.1, pax, "ustar Interchange Format"). Plain files alone: no
 * folders, links, owners or dates. What is read may come from anyone.
 */
#define USTAR_BLOCK 512
#define USTAR_NAME_MAX 99

struct ustar_file {
	char name[USTAR_NAME_MAX + 1]; /* letters, digits and "._-"; begins with no dot */
	const void *data; /* of a file that was read: inside what is read */
	size_t len;
	unsigned mode;
};

/* Appends one file. ERR_LIMIT, ERR_NOMEM: out is of no use any more. */
ERR_MUST_USE enum err ustar_put(struct buf *out, const struct ustar_file *file);
/* Appends what ends an archive. */
ERR_MUST_USE enum err ustar_end(struct buf *out);

struct ustar_reader {
	const uint8_t *data; /* what is left of it */
	size_t len;
};
/* The next file. ERR_NOTFOUND: there was the end, and nothing follows it. ERR_INVALID: it is not what ustar_put and ustar_end make. */
ERR_MUST_USE enum err ustar_next(struct ustar_reader *r, struct ustar_file *out, struct why *why);

#endif
