#ifndef STAMP_H
#define STAMP_H
#include <stdbool.h>
#include <stdint.h>

#include "err.h"

/* Identity and times of a file by the file system: the stamp changes when somebody writes to the file or puts another in its place. Any
 * thread. */
struct stamp {
	uint64_t device, inode, bytes;
	int64_t written_s, written_ns, changed_s, changed_ns;
};

/* The stamp of the file at path; errors as err_errno, and then *out is zeros. */
ERR_MUST_USE enum err stamp_of(const char *path, struct stamp *out, struct why *why);
bool stamp_same(const struct stamp *a, const struct stamp *b);

#endif
