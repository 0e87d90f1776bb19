#ifndef CONFINE_H
#define CONFINE_H
#include <stdint.h>

#include "err.h"

/*
 * What a process may still do with files: a Landlock domain (Linux 5.13 and later; docs.kernel.org/userspace-api/landlock.html). A
 * domain only takes rights away: file modes count as before. A domain holds for the calling thread and for every thread and process that
 * it starts later, and cannot be left. A kernel with an older Landlock enforces less; only confine_version tells.
 */
enum confine_access {
	CONFINE_READ = 1 << 0, /* read, list, run */
	CONFINE_WRITE = 1
	    << 1, /* change, make, remove, rename; a CONFINE_FILES domain wants CONFINE_READ beside it */
	/* read and write what is there, device nodes with their ioctls; make nothing */
	CONFINE_DEVICES = 1 << 2,
	CONFINE_SOCKETS = 1 << 3, /* make Unix sockets, remove files */
	CONFINE_NO_LINKS =
	    1 << 4, /* beside CONFINE_WRITE: no symbolic link is made there, or moved there */
	/* Beside CONFINE_WRITE: nothing is moved or linked from one directory to another, neither out of it, nor into it, nor within. */
	CONFINE_NO_MOVES = 1 << 5,
};

enum confine_kind {
	CONFINE_WRITES, /* writing is refused where it is not allowed; reading and running stay free */
	/* Reading, running and writing are refused where not allowed; signals and abstract sockets to processes outside always. */
	CONFINE_FILES,
};

/* Version of the kernel's Landlock; 0: the kernel has none, or Landlock is switched off. */
int confine_version(void);

struct confine {
	int fd; /* -1: nothing to enter */
	uint64_t handled;
	const char *but; /* see confine_init */
};

/* but: a directory (a resolved path, which must outlive *out) that stays forbidden though a directory above it is allowed; paths below
 * `but` may be allowed by name. NULL: there is no such directory. ERR_UNSUPPORTED without Landlock. */
ERR_MUST_USE enum err confine_init(
    struct confine *out, enum confine_kind kind, const char *but, struct why *why);
void confine_deinit(struct confine *c);
/* Allows `access` (bits of enum confine_access) to a file, or to a directory and all below it. ERR_NOTFOUND if nothing has that path,
 * ERR_DENIED for `but` itself. */
ERR_MUST_USE enum err confine_allow(
    const struct confine *c, const char *path, unsigned access, struct why *why);
/* Puts the calling thread into the domain, for good; programs that it starts can no longer gain rights by set-user-ID. */
ERR_MUST_USE enum err confine_enter(const struct confine *c, struct why *why);

#endif
