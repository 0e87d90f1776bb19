#include "home.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "file.h"
#include "identity.h"

#define LOCK "lock"
#define NOTE_MAX 512

static long
read_holder(int fd)
{
	char text[32] = "";
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	long pid = n > 0 ? strtol(text, NULL, 10) : 0;

	return pid > 0 ? pid : -1;
}

enum err
home_lock(int *fd, const char *home, struct why *why)
{
	char path[PATH_MAX];
	enum err e = identity_path(path, home, LOCK, why);

	*fd = -1;
	if (e)
		return e;
	int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (lock < 0)
		return err_errno(why, "open %s", path);
	if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
		e = errno == EWOULDBLOCK
		    ? err_set(why, ERR_STATE,
			  "another process (%ld) works in %s: stop the agent first",
			  read_holder(lock), home)
		    : err_errno(why, "lock %s", path);
		close(lock);
		return e;
	}
	/* The number is for people only, so that a failure to write it does not matter. */
	if (ftruncate(lock, 0) == 0)
		(void)!dprintf(lock, "%ld\n", (long)getpid());
	*fd = lock;
	return ERR_OK;
}

void
home_unlock(int fd)
{
	if (fd < 0)
		return;
	(void)!ftruncate(fd, 0);
	close(fd);
}

long
home_holder(const char *home)
{
	char path[PATH_MAX];
	long pid = 0;

	if (identity_path(path, home, LOCK, NULL))
		return 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK)
		pid = read_holder(fd);
	close(fd);
	return pid;
}

bool
home_has(const char *home, const char *name)
{
	char path[PATH_MAX];

	return identity_path(path, home, name, NULL) == ERR_OK && access(path, F_OK) == 0;
}

enum err
home_put(const char *home, const char *name, const char *text, struct why *why)
{
	char path[PATH_MAX];
	enum err e = identity_path(path, home, name, why);

	return e ? e : file_write(path, text, strlen(text), 0600, why);
}

static bool
has_text(const char *path, const char *text)
{
	char *old = NULL;
	size_t len;
	bool same = file_read(path, NOTE_MAX, &old, &len, NULL) == ERR_OK && strcmp(old, text) == 0;

	free(old);
	return same;
}

void
home_note(const char *home, const char *word, const char *detail)
{
	char path[PATH_MAX], part[PATH_MAX], line[NOTE_MAX];

	snprintf(line, sizeof(line), "%s %s\n", word, detail);
	if (identity_path(path, home, HOME_LAST, NULL) || has_text(path, line) ||
	    identity_path(part, home, HOME_LAST ".part", NULL))
		return;
	int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return;
	enum err e = file_pwrite(fd, line, strlen(line), 0);
	close(fd);
	if (e || rename(part, path) != 0)
		unlink(part);
}

enum err
home_drop(const char *home, const char *name, struct why *why)
{
	char path[PATH_MAX];
	enum err e = identity_path(path, home, name, why);

	if (e)
		return e;
	if (unlink(path) != 0)
		return errno == ENOENT ? ERR_OK : err_errno(why, "remove %s", path);
	return file_sync_dir(home, why);
}
