#include "file.h"
#include "fault.h"
#include "wild.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_BLOCK (256u << 10)

enum err
file_pwrite(int fd, const void *data, size_t len, uint64_t at)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = pwrite(fd, p, len, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(NULL, "pwrite");
		if (n == 0)
			return ERR_IO;
		p += n;
		at += (uint64_t)n;
		len -= (size_t)n;
	}
	return ERR_OK;
}

enum err
file_pread(int fd, void *data, size_t len, uint64_t at)
{
	char *p = data;

	while (len > 0) {
		ssize_t n = pread(fd, p, len, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(NULL, "pread");
		if (n == 0)
			return ERR_CORRUPT;
		p += n;
		at += (uint64_t)n;
		len -= (size_t)n;
	}
	return ERR_OK;
}

/* Without O_NONBLOCK, opening a FIFO by mistake would wait for a writer. */
static enum err
open_regular(int *fd, size_t *size, const char *path, uint64_t max, struct why *why)
{
	struct stat st;
	enum err e = ERR_OK;

	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (*fd < 0)
		return err_errno(why, "open %s", path);
	if (fstat(*fd, &st) != 0)
		e = err_errno(why, "stat %s", path);
	else if (!S_ISREG(st.st_mode))
		e = err_set(why, ERR_INVALID, "%s is not a regular file", path);
	else if ((uint64_t)st.st_size > max || (uint64_t)st.st_size > SIZE_MAX - 1)
		e = err_set(why, ERR_LIMIT, "%s is larger than %llu bytes", path,
		    (unsigned long long)(max < SIZE_MAX ? max : SIZE_MAX - 1));
	else
		*size = (size_t)st.st_size;
	if (e)
		close(*fd);
	return e;
}

enum err
file_read(const char *path, size_t max, char **data, size_t *len, struct why *why)
{
	size_t size = 0;
	int fd;
	enum err e = open_regular(&fd, &size, path, max, why);

	if (e)
		return e;
	char *out = malloc(size + 1);
	e = out ? file_pread(fd, out, size, 0) : ERR_NOMEM;
	close(fd);
	if (e) {
		free(out);
		return err_set(why, e, "read %s: %s", path, err_name(e));
	}
	out[size] = '\0';
	*data = out;
	*len = size;
	return ERR_OK;
}

enum err
file_map(struct file_map *out, const char *path, uint64_t max, bool ahead, struct why *why)
{
	size_t size = 0;
	int fd;
	enum err e = open_regular(&fd, &size, path, max, why);

	if (e)
		return e;
	void *data = MAP_FAILED;
	if (size == 0)
		e = err_set(why, ERR_INVALID, "%s is empty", path);
	else
		data = mmap(NULL, size, PROT_READ, MAP_SHARED | (ahead ? MAP_POPULATE : 0), fd, 0);
	if (!e && data == MAP_FAILED)
		e = err_errno(why, "map %s", path);
	close(fd);
	if (!e)
		*out = (struct file_map){data, size};
	return e;
}

void
file_unmap(struct file_map *map)
{
	if (map->data)
		munmap((void *)(uintptr_t)map->data, map->len);
	*map = (struct file_map){0};
}

/* The directory part of path ("." if none) in out. */
static void
dir_of(const char *path, char out[PATH_MAX])
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		snprintf(out, PATH_MAX, ".");
	else
		snprintf(out, PATH_MAX, "%.*s", slash == path ? 1 : (int)(slash - path), path);
}

static enum err
copy_bytes(int in, int out)
{
	char *block = malloc(COPY_BLOCK);
	enum err e = block ? ERR_OK : ERR_NOMEM;
	uint64_t at = 0;
	ssize_t n = 1;

	while (!e && n != 0) {
		n = read(in, block, COPY_BLOCK);
		e = n < 0 ? ERR_IO : file_pwrite(out, block, (size_t)n, at);
		at += n > 0 ? (uint64_t)n : 0;
	}
	free(block);
	return e;
}

enum err
file_copy(const char *from, const char *to, mode_t mode, struct why *why)
{
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = in < 0 ? -1 : open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	enum err e = in < 0 || out < 0 ? ERR_IO : ERR_OK;

	if (!e && ioctl(out, FICLONE, in) != 0)
		e = copy_bytes(in, out);
	if (e)
		e = err_errno(why, "copy %s to %s", from, to);
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return e;
}

enum err
file_sync_dir(const char *path, struct why *why)
{
	enum err e = ERR_OK;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_errno(why, "open directory %s", path);
	if (fsync(fd) != 0)
		e = err_errno(why, "sync directory %s", path);
	close(fd);
	return e;
}

/* Devices, pipes and what /dev/stdout is a link to stay: for root a rename would put a file in the place of /dev/null. */
static bool
may_be_replaced(const char *path)
{
	static const char own[] = "/proc/";
	char link[sizeof(own) - 1];
	struct stat st;

	if (stat(path, &st) != 0)
		return true;
	bool of_process = readlink(path, link, sizeof(link)) == (ssize_t)sizeof(link) &&
	    memcmp(link, own, sizeof(link)) == 0;
	return !of_process && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
}

enum err
file_rename(const char *from, const char *to, struct why *why)
{
	char dir[PATH_MAX];

	FAULT("file.synced");
	if (!may_be_replaced(to))
		return err_set(why, ERR_INVALID, "%s is no regular file", to);
	if (rename(from, to) != 0)
		return err_errno(why, "rename %s to %s", from, to);
	FAULT("file.renamed");
	dir_of(to, dir);
	return file_sync_dir(dir, why);
}

enum err
file_commit(int fd, const char *from, const char *to, struct why *why)
{
	if (fdatasync(fd) != 0)
		return err_errno(why, "sync %s", from);
	return file_rename(from, to, why);
}

enum err
file_write(const char *path, const void *data, size_t len, mode_t mode, struct why *why)
{
	char temp[PATH_MAX];
	int n = snprintf(temp, sizeof(temp), "%s.XXXXXX", path);

	if (n < 0 || (size_t)n >= sizeof(temp))
		return err_set(why, ERR_LIMIT, "path too long: %s", path);
	int fd = mkostemp(temp, O_CLOEXEC);
	if (fd < 0)
		return err_errno(why, "create %s", temp);
	enum err e = file_pwrite(fd, data, len, 0);
	if (e)
		err_errno(why, "write %s", temp);
	else if (fchmod(fd, mode) != 0)
		e = err_errno(why, "chmod %s", temp);
	else
		e = file_commit(fd, temp, path, why);
	close(fd);
	if (e)
		unlink(temp);
	return e;
}

enum err
file_mkdirs(const char *path, mode_t mode, struct why *why)
{
	char part[PATH_MAX];
	size_t len = strlen(path);

	if (len == 0 || len >= sizeof(part))
		return err_set(why, ERR_INVALID, "bad directory name \"%.40s\"", path);
	memcpy(part, path, len + 1);
	for (size_t i = 1; i <= len; i++) {
		if (part[i] != '/' && part[i] != '\0')
			continue;
		char c = part[i];
		part[i] = '\0';
		if (mkdir(part, mode) != 0 && errno != EEXIST)
			return err_errno(why, "create directory %s", part);
		part[i] = c;
	}
	struct stat st;
	if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
		return err_set(why, ERR_INVALID, "%s is not a directory", path);
	return ERR_OK;
}

enum err
file_empty_dir(const char *path, struct why *why)
{
	enum err e = ERR_OK;
	DIR *d = opendir(path);
	struct dirent *ent;

	if (!d)
		return errno == ENOENT ? ERR_OK : err_errno(why, "open directory %s", path);
	while ((ent = readdir(d))) {
		if (strcmp(ent->d_name, ".") == 0 || strcmp(ent->d_name, "..") == 0)
			continue;
		if (unlinkat(dirfd(d), ent->d_name, 0) != 0 && errno != EISDIR && errno != ENOENT)
			e = err_errno(why, "remove %s/%s", path, ent->d_name);
	}
	closedir(d);
	return e;
}

enum err
file_set_aside(const char *path, const char *dir, struct why *why)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char to[PATH_MAX];
	struct stat st;

	enum err e = file_mkdirs(dir, 0700, why);
	if (e)
		return e;
	for (unsigned i = 0;; i++) {
		if (snprintf(to, sizeof(to), "%s/%s.%u", dir, name, i) >= (int)sizeof(to))
			return err_set(why, ERR_LIMIT, "path too long: %s", dir);
		if (lstat(to, &st) != 0)
			break;
	}
	if (rename(path, to) != 0)
		return err_errno(why, "move %s to %s", path, dir);
	/* The date is for people who tidy up; without it the file is as safe. */
	(void)!utimensat(AT_FDCWD, to, NULL, AT_SYMLINK_NOFOLLOW);
	return file_sync_dir(dir, why);
}

enum err
file_lock(const char *path, int *fd, struct why *why)
{
	enum err e = ERR_OK;

	*fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (*fd < 0)
		return err_errno(why, "open %s", path);
	if (flock(*fd, LOCK_EX | LOCK_NB) != 0)
		e = err_set(why, ERR_EXISTS, "another process has locked %s", path);
	if (e) {
		close(*fd);
		*fd = -1;
	}
	return e;
}

enum err
file_give(const char *path, const char *dir, struct why *why)
{
	struct stat st;

	if (geteuid() != 0)
		return ERR_OK;
	return stat(dir, &st) == 0 && lchown(path, st.st_uid, st.st_gid) == 0
	    ? ERR_OK
	    : err_errno(why, "chown %s", path);
}

enum err
file_remove_dir(const char *path, struct why *why)
{
	char dir[PATH_MAX];
	const char *slash = strrchr(path, '/');
	struct why inner = {""};

	dir_of(path, dir);
	int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? ERR_OK : err_errno(why, "open directory %s", dir);
	enum err e = wild_remove(fd, slash ? slash + 1 : path, &inner);
	close(fd);
	return e ? err_set(why, e, "remove %s: %s", path, inner.text) : ERR_OK;
}

/* --- for a while */

static enum err
scratch_path(char *path, const char *name, struct why *why)
{
	const char *base = getenv("TMPDIR");
	int n = snprintf(path, PATH_MAX, "%s/%s.XXXXXX", base && *base ? base : "/tmp", name);

	if (n > 0 && n < PATH_MAX)
		return ERR_OK;
	path[0] = '\0';
	return err_set(why, ERR_LIMIT, "TMPDIR is too long");
}

enum err
file_scratch_dir(char *path, const char *name, struct why *why)
{
	enum err e = scratch_path(path, name, why);

	if (e || mkdtemp(path))
		return e;
	e = err_errno(why, "create a scratch directory %s", path);
	path[0] = '\0';
	return e;
}

enum err
file_scratch(int *fd, struct why *why)
{
	char path[PATH_MAX];
	enum err e = scratch_path(path, "rivulet", why);

	if (e)
		return e;
	*fd = mkostemp(path, O_CLOEXEC);
	if (*fd < 0)
		return err_errno(why, "create a scratch file %s", path);
	unlink(path);
	return ERR_OK;
}
