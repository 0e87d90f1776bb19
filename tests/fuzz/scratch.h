#ifndef SCRATCH_H
#define SCRATCH_H
/*
 * A directory in memory for targets whose parser reads files. One per process; gone when it ends.
 */
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "file.h"

static char scratch_dir[64];

static inline void
scratch_remove(void)
{
	(void)!file_empty_dir(scratch_dir, NULL);
	rmdir(scratch_dir);
}

/* Another test may have filled what is in memory. */
static inline bool
scratch_fits(const char *dir)
{
	struct statvfs fs;

	return access(dir, W_OK) == 0 && statvfs(dir, &fs) == 0 &&
	    (uint64_t)fs.f_bavail * fs.f_frsize >= 32u << 20;
}

/* The directory's name. */
static inline const char *
scratch_get(void)
{
	if (scratch_dir[0])
		return scratch_dir;
	strcpy(scratch_dir, scratch_fits("/dev/shm") ? "/dev/shm/fuzz.XXXXXX" : "/tmp/fuzz.XXXXXX");
	if (!mkdtemp(scratch_dir))
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
