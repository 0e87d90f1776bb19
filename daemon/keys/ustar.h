#ifndef USTAR_H
#define USTAR_H
#include <stddef.h>
#include <stdint.h>

#include "buf.h"

/*
 * A few small files in one archive, in memory: POSIX ustar (IEEE Std 1003.1, pax, "ustar Interchange Format"). Plain files only: no
 * folders, links, owners or dates. An archive that is read may come from anyone.
 */
#define USTAR_BLOCK 512
#define USTAR_NAME_MAX 99

struct ustar_file {
	char name[USTAR_NAME_MAX + 1]; /* letters, digits and "._-"; begins with no dot */
	const void *data; /* after ustar_next it points into the reader's archive */
	size_t len;
	unsigned mode;
};

/* Appends one file to an archive. After ERR_LIMIT or ERR_NOMEM the archive is of no use any more. */
ERR_MUST_USE enum err ustar_put(struct buf *out, const struct ustar_file *file);
/* Appends what ends an archive. */
ERR_MUST_USE enum err ustar_end(struct buf *out);

struct ustar_reader {
	const uint8_t *data; /* the rest of the archive that is not read yet; the caller's */
	size_t len;
};
/* Reads the next file. ERR_NOTFOUND: the archive has ended, and nothing follows. ERR_INVALID: not as ustar_put and ustar_end write it. */
ERR_MUST_USE enum err ustar_next(struct ustar_reader *r, struct ustar_file *out, struct why *why);

#endif
