#ifndef SCRATCH_H
#define SCRATCH_H
/*
 * A directory in memory for targets whose parser reads files. One per process; gone when it ends.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"

static char scratch_dir[64];

static inline void
scratch_remove(void)
{
	(void)!file_empty_dir(scratch_dir, NULL);
	rmdir(scratch_dir);
}

/* The directory's name. */
static inline const char *
scratch_get(void)
{
	if (scratch_dir[0])
		return scratch_dir;
	strcpy(scratch_dir,
	    access("/dev/shm", W_OK) == 0 ? "/dev/shm/fuzz.XXXXXX" : "/tmp/fuzz.XXXXXX");
	/* Held open: an agent of the same user, in a test beside this one, removes what nobody has open there (sandbox/shm.h). */
	if (!mkdtemp(scratch_dir) || open(scratch_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) < 0)
		abort();
	atexit(scratch_remove);
	return scratch_dir;
}

/* Makes `name` in it hold exactly these bytes. */
static inline void
scratch_put(const char *name, const uint8_t *data, size_t len)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", scratch_get(), name);
	FILE *f = fopen(path, "wb");
	if (!f || (len > 0 && fwrite(data, 1, len, f) != len) || fclose(f) != 0)
		abort();
}

#endif
