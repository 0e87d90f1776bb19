#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "fault.h"
#include "file.h"
#include "store_inside.h"

/* What an earlier call left, and what of it is not in the database's own file. */
static enum err
remove_unfinished(const char *temp, struct why *why)
{
	static const char *const ends[] = {"", "-wal", "-shm"};
	char path[PATH_MAX + 8];

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", temp, ends[i]);
		if (unlink(path) != 0 && errno != ENOENT)
			return err_errno(why, "remove %s", path);
	}
	return ERR_OK;
}

/* Closing has moved the log into the file; one that is still there holds what would be lost. */
static enum err
adopt(const char *temp, const char *path, struct why *why)
{
	char wal[PATH_MAX + 8];

	snprintf(wal, sizeof(wal), "%s-wal", temp);
	if (access(wal, F_OK) == 0)
		return err_set(why, ERR_IO, "%s could not be moved into its database", wal);
	int fd = open(temp, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return err_errno(why, "open %s", temp);
	enum err e = file_commit(fd, temp, path, why);
	close(fd);
	return e;
}

enum err
store_create(const char *path, store_work first, void *arg, struct why *why)
{
	char temp[PATH_MAX];
	struct store *s = NULL;

	if (snprintf(temp, sizeof(temp), "%s" STORE_UNFINISHED, path) >= PATH_MAX)
		return err_set(why, ERR_LIMIT, "path too long: %s", path);
	if (access(path, F_OK) == 0)
		return err_set(why, ERR_EXISTS, "%s is there already", path);
	enum err e = remove_unfinished(temp, why);
	if (!e)
		e = store_open_fresh(&s, temp, why);
	if (!e && first)
		e = store_write(s, first, arg, why);
	store_close(s);
	FAULT("store.created");
	return e ? e : adopt(temp, path, why);
}
