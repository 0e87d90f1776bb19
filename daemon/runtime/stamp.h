#ifndef STAMP_H
#define STAMP_H
#include <stdbool.h>
#include <stdint.h>

#include "err.h"

/* What the file system says of a file: another stamp once somebody has written to it, or put another in its place. Any thread. */
struct stamp {
	uint64_t device, inode, bytes;
	int64_t written_s, written_ns, changed_s, changed_ns;
};

/* As it is now; as err_errno, and then *out is zeros. */
ERR_MUST_USE enum err stamp_of(const char *path, struct stamp *out, struct why *why);
bool stamp_same(const struct stamp *a, const struct stamp *b);

#endif
