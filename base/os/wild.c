#include "wild.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "file.h"

#define SHOWN 100 /* bytes of a name in a reason */
#define OF_DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)

static void
close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* --- directories */

/* Lets its user in. It is the directory that is open, whatever its name means by now. */
static bool
let_in(int directory, const char *name)
{
	char path[64];
	struct stat st;
	int fd = openat(directory, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	bool done = false;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		done = chmod(path, 0700) == 0;
	}
	if (fd >= 0)
		close(fd);
	return done;
}

/* To be emptied: also one that nobody may read, enter or change. */
static int
enter(int directory, const char *name)
{
	struct stat st;
	int fd = openat(directory, name, OF_DIRECTORY);

	if (fd < 0 && errno == EACCES && let_in(directory, name))
		fd = openat(directory, name, OF_DIRECTORY);
	if (fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & 0700) != 0700)
		(void)!fchmod(fd, 0700);
	return fd;
}

enum err
wild_directory(int *fd, const char *path, struct why *why)
{
	*fd = enter(AT_FDCWD, path);
	return *fd < 0 ? err_errno(why, "open directory %s", path) : ERR_OK;
}

enum err
wild_make(int *fd, int directory, const char *name, struct why *why)
{
	*fd = -1;
	if (mkdirat(directory, name, 0700) != 0)
		return errno == EEXIST ? err_set(why, ERR_EXISTS, "%.*s exists", SHOWN, name)
				       : err_errno(why, "create directory %.*s", SHOWN, name);
	*fd = openat(directory, name, OF_DIRECTORY);
	return *fd < 0 ? err_errno(why, "open directory %.*s", SHOWN, name) : ERR_OK;
}

/* --- files */

static enum err
check(const struct stat *st, const char *name, uint64_t max, struct why *why)
{
	if (!S_ISREG(st->st_mode))
		return err_set(why, ERR_INVALID, "%.*s is a link, or no regular file", SHOWN, name);
	if (st->st_nlink != 1)
		return err_set(
		    why, ERR_INVALID, "%.*s has other names as well (hard links)", SHOWN, name);
	if ((uint64_t)st->st_size > max)
		return err_set(why, ERR_LIMIT, "%.*s is larger than %llu bytes", SHOWN, name,
		    (unsigned long long)max);
	return ERR_OK;
}

enum err
wild_open(int *fd, int directory, const char *name, uint64_t max, struct why *why)
{
	struct stat st;

	*fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (*fd < 0 && (errno == ELOOP || errno == ENXIO || errno == ENODEV))
		return err_set(why, ERR_INVALID, "%.*s is a link, or no regular file", SHOWN, name);
	if (*fd < 0)
		return err_errno(why, "open %.*s", SHOWN, name);
	enum err e = fstat(*fd, &st) != 0 ? err_errno(why, "stat %.*s", SHOWN, name)
					  : check(&st, name, max, why);
	if (e)
		close_end(fd);
	return e;
}

enum err
wild_read(int directory, const char *name, size_t max, char **data, size_t *len, struct why *why)
{
	struct stat st;
	int fd;
	enum err e = wild_open(&fd, directory, name, max, why);

	if (e)
		return e;
	char *out = NULL;
	if (fstat(fd, &st) != 0 || (uint64_t)st.st_size > max)
		e = ERR_LIMIT;
	else if (!(out = malloc((size_t)st.st_size + 1)))
		e = ERR_NOMEM;
	else
		e = file_pread(fd, out, (size_t)st.st_size, 0);
	close(fd);
	if (e) {
		free(out);
		return err_set(why, e, "read %.*s: %s", SHOWN, name, err_name(e));
	}
	out[st.st_size] = '\0';
	*data = out;
	*len = (size_t)st.st_size;
	return ERR_OK;
}

enum err
wild_create(int *fd, int directory, const char *name, struct why *why)
{
	*fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (*fd < 0 && errno == EEXIST)
		return err_set(why, ERR_EXISTS, "%.*s exists", SHOWN, name);
	return *fd < 0 ? err_errno(why, "create %.*s", SHOWN, name) : ERR_OK;
}

/* --- rm -r */

#define LEVELS 128 /* what lies deeper is moved up to the first directory */

/* Of a directory that was open, so that another one in its place is known. */
struct place {
	dev_t device;
	ino_t inode;
};

struct removal {
	int root; /* the first directory */
	DIR *now; /* the one that is being emptied */
	struct place above[LEVELS]; /* from the first to the one that `now` was found in */
	size_t depth;
	dev_t device;
	unsigned long moved; /* directories so far */
	double until;
};

static bool
is_there(int fd, const struct place *place)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == place->device && st.st_ino == place->inode;
}

/* Goes on with an open directory, which is taken. */
static enum err
walk(struct removal *r, int fd, struct why *why)
{
	DIR *next = fd < 0 ? NULL : fdopendir(fd);

	if (!next) {
		enum err e = err_errno(why, "open a directory");
		close_end(&fd);
		return e;
	}
	if (r->now)
		closedir(r->now);
	r->now = next;
	return ERR_OK;
}

static enum err
start_over(struct removal *r, struct why *why)
{
	r->depth = 0;
	return walk(r, openat(r->root, ".", OF_DIRECTORY), why);
}

/* Where somebody has moved the directory elsewhere, ".." is another one. */
static enum err
ascend(struct removal *r, struct why *why)
{
	int fd = openat(dirfd(r->now), "..", OF_DIRECTORY);

	if (fd >= 0 && is_there(fd, &r->above[r->depth - 1])) {
		r->depth--;
		return walk(r, fd, why);
	}
	close_end(&fd);
	return start_over(r, why);
}

/* So many levels are as deep as it goes. */
static enum err
move_up(struct removal *r, const char *name, struct why *why)
{
	char to[32];

	(void)let_in(dirfd(r->now), name);
	for (;;) {
		snprintf(to, sizeof(to), "deep.%lu", r->moved++);
		if (renameat(dirfd(r->now), name, r->root, to) == 0 || errno == ENOENT)
			return ERR_OK;
		bool taken =
		    errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR || errno == EISDIR;
		if (!taken || clock_seconds() > r->until)
			return err_errno(why, "move %.*s up", SHOWN, name);
	}
}

static enum err
descend(struct removal *r, const char *name, struct why *why)
{
	struct stat here, there;

	if (r->depth == LEVELS)
		return move_up(r, name, why);
	int fd = enter(dirfd(r->now), name);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return ERR_OK;
	if (fd < 0)
		return err_errno(why, "open directory %.*s", SHOWN, name);
	if (fstat(fd, &there) != 0 || fstat(dirfd(r->now), &here) != 0 ||
	    there.st_dev != r->device) {
		close(fd);
		return err_set(why, ERR_INVALID, "%.*s is on another file system", SHOWN, name);
	}
	r->above[r->depth++] = (struct place){here.st_dev, here.st_ino};
	return walk(r, fd, why);
}

/* *full: it is a directory with something in it. */
static enum err
remove_entry(int directory, const char *name, bool *full, struct why *why)
{
	*full = false;
	if (unlinkat(directory, name, 0) == 0 || errno == ENOENT)
		return ERR_OK;
	int first = errno;
	if (first == EISDIR || first == EPERM) {
		if (unlinkat(directory, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return ERR_OK;
		*full = errno == ENOTEMPTY || errno == EEXIST;
		/* Something else by now: the next look finds it. */
		if (*full || (errno == ENOTDIR && first == EISDIR))
			return ERR_OK;
		errno = errno == ENOTDIR ? first : errno;
	}
	return err_errno(why, "remove %.*s", SHOWN, name);
}

/* Until an entry is found that has to be emptied first, or there are no more: *ended. */
static enum err
remove_entries(struct removal *r, bool *ended, struct why *why)
{
	struct dirent *entry;
	bool full = false;
	enum err e = ERR_OK;

	while (!e && !full && (entry = readdir(r->now))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		e = remove_entry(dirfd(r->now), entry->d_name, &full, why);
		if (!e && full)
			e = descend(r, entry->d_name, why);
		if (!e && clock_seconds() > r->until)
			e = err_set(why, ERR_TIMEOUT, "not empty after %d s", WILD_REMOVE_S);
	}
	*ended = !full;
	return e;
}

static enum err
empty(struct removal *r, struct why *why)
{
	bool ended = false;
	enum err e = start_over(r, why);

	while (!e && !(ended && r->depth == 0)) {
		e = ended ? ascend(r, why) : ERR_OK;
		if (!e)
			e = remove_entries(r, &ended, why);
	}
	if (r->now)
		closedir(r->now);
	return e;
}

/* r->root is -1: it is no directory any more. */
static enum err
open_root(struct removal *r, int directory, const char *name, struct why *why)
{
	struct stat st;

	r->now = NULL;
	r->root = enter(directory, name);
	if (r->root < 0 && errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
		return err_errno(why, "open directory %.*s", SHOWN, name);
	r->device = r->root >= 0 && fstat(r->root, &st) == 0 ? st.st_dev : 0;
	return ERR_OK;
}

enum err
wild_remove(int directory, const char *name, struct why *why)
{
	struct removal r = {.until = clock_seconds() + WILD_REMOVE_S};
	bool full = false;
	enum err e = remove_entry(directory, name, &full, why);

	while (!e && full) {
		e = open_root(&r, directory, name, why);
		if (!e && r.root >= 0) {
			e = empty(&r, why);
			close(r.root);
		}
		if (!e)
			e = remove_entry(directory, name, &full, why);
		if (!e && full && clock_seconds() > r.until)
			e = err_set(why, ERR_TIMEOUT, "not empty after %d s", WILD_REMOVE_S);
	}
	return e;
}

enum err
wild_empty(int directory, struct why *why)
{
	struct removal r = {.until = clock_seconds() + WILD_REMOVE_S, .root = directory};
	struct stat st;

	if (fstat(directory, &st) != 0)
		return err_errno(why, "stat a directory");
	r.device = st.st_dev;
	return empty(&r, why);
}
