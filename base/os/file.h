#ifndef FILE_H
#define FILE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "err.h"

/*
 * Files that are either the old or the new version after a crash, and reads with a limit. All calls block.
 * Reasons in `why` name the step and the path.
 */

/* Reads a whole regular file of at most max bytes into a fresh allocation, with a zero byte after it; the
 * caller frees *data. ERR_LIMIT if larger, ERR_NOTFOUND if absent. */
ERR_MUST_USE enum err file_read(
    const char *path, size_t max, char **data, size_t *len, struct why *why);
/* A regular file's bytes, mapped read-only: at least one. A file that somebody cuts short meanwhile ends the process when the lost
 * bytes are touched. */
struct file_map {
	const uint8_t *data; /* NULL: nothing is mapped */
	size_t len;
};
/* Maps a regular file of 1 to max bytes; file_unmap ends it. ahead: all of it is read now, and not as it is touched. ERR_INVALID if
 * it is empty or no regular file, ERR_LIMIT if larger, ERR_NOTFOUND if absent. Opening never waits, whatever stands there. */
ERR_MUST_USE enum err file_map(
    struct file_map *out, const char *path, uint64_t max, bool ahead, struct why *why);
void file_unmap(struct file_map *map); /* zeros are legal */
/* Temporary name, write, fdatasync, rename, sync of the directory. */
ERR_MUST_USE enum err file_write(
    const char *path, const void *data, size_t len, mode_t mode, struct why *why);
/* Syncs the file behind fd (opened as `from`), renames it to `to` and syncs the directory of `to`. */
ERR_MUST_USE enum err file_commit(int fd, const char *from, const char *to, struct why *why);
/* The same of a file that is synced already. ERR_INVALID for both: `to` is a device or a pipe, which stays. */
ERR_MUST_USE enum err file_rename(const char *from, const char *to, struct why *why);
/* A new file, or an old one overwritten, with these bytes; not made durable. Where the file system shares blocks it costs none. */
ERR_MUST_USE enum err file_copy(const char *from, const char *to, mode_t mode, struct why *why);
/* Makes entries of a directory durable. */
ERR_MUST_USE enum err file_sync_dir(const char *path, struct why *why);
/* mkdir -p; existing directories are fine. */
ERR_MUST_USE enum err file_mkdirs(const char *path, mode_t mode, struct why *why);
/* Writes or reads exactly len bytes at offset, repeating short transfers. Reading past the end is ERR_CORRUPT. */
ERR_MUST_USE enum err file_pwrite(int fd, const void *data, size_t len, uint64_t at);
ERR_MUST_USE enum err file_pread(int fd, void *data, size_t len, uint64_t at);
/* Moves a file into a directory of the same file system, which is made if need be, as NAME.N with the first N that is free, and dates
 * it now. */
ERR_MUST_USE enum err file_set_aside(const char *path, const char *dir, struct why *why);
/* A lock that goes with the process or with *fd, on a file made if need be. ERR_EXISTS if another process has it; *fd is -1 after a
 * failure. */
ERR_MUST_USE enum err file_lock(const char *path, int *fd, struct why *why);
/* Removes every entry of a directory that is a plain file; a missing directory is fine. */
ERR_MUST_USE enum err file_empty_dir(const char *path, struct why *why);
/* What root has made in a directory becomes its owner's, who is to use it; done by anybody else it is theirs already. */
ERR_MUST_USE enum err file_give(const char *path, const char *dir, struct why *why);
/* wild_remove (wild.h) of a path, of which only the last name is of others. It has no slash at its end. */
ERR_MUST_USE enum err file_remove_dir(const char *path, struct why *why);
/* Below TMPDIR, else /tmp: a directory of its own, "NAME.XXXXXX"; path has PATH_MAX bytes and is "" after a failure. */
ERR_MUST_USE enum err file_scratch_dir(char *path, const char *name, struct why *why);
/* There too: a file that has no name, and is gone once nobody has it open. */
ERR_MUST_USE enum err file_scratch(int *fd, struct why *why);

#endif
