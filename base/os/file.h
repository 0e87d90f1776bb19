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
/* Maps a regular file of 1 to max bytes; file_unmap ends the mapping. ahead: the whole file is read now, and not page by page when touched.
 * ERR_INVALID if the file is empty or not regular, ERR_LIMIT if larger, ERR_NOTFOUND if absent. Opening never waits, even for a pipe. */
ERR_MUST_USE enum err file_map(
    struct file_map *out, const char *path, uint64_t max, bool ahead, struct why *why);
void file_unmap(struct file_map *map); /* zeros are legal */
/* Replaces a file durably: temporary name, write, fdatasync, rename, sync of the directory. */
ERR_MUST_USE enum err file_write(
    const char *path, const void *data, size_t len, mode_t mode, struct why *why);
/* Syncs the file behind fd (opened as `from`), renames it to `to` and syncs the directory of `to`. */
ERR_MUST_USE enum err file_commit(int fd, const char *from, const char *to, struct why *why);
/* file_commit of a file that is synced already. Both calls give ERR_INVALID if `to` is a device or a pipe, and leave `to` alone. */
ERR_MUST_USE enum err file_rename(const char *from, const char *to, struct why *why);
/* Copies `from` to `to`, which is created or overwritten; not durable. Takes no disk space where the file system can share blocks. */
ERR_MUST_USE enum err file_copy(const char *from, const char *to, mode_t mode, struct why *why);
/* Makes entries of a directory durable. */
ERR_MUST_USE enum err file_sync_dir(const char *path, struct why *why);
/* mkdir -p; existing directories are fine. */
ERR_MUST_USE enum err file_mkdirs(const char *path, mode_t mode, struct why *why);
/* Writes or reads exactly len bytes at offset, repeating short transfers. Reading past the end is ERR_CORRUPT. */
ERR_MUST_USE enum err file_pwrite(int fd, const void *data, size_t len, uint64_t at);
ERR_MUST_USE enum err file_pread(int fd, void *data, size_t len, uint64_t at);
/* Moves a file into a directory of the same file system, which is made if need be, as NAME.N with the first N that is free, and sets
 * the file's date to now. */
ERR_MUST_USE enum err file_set_aside(const char *path, const char *dir, struct why *why);
/* Locks a file, made if need be, until *fd is closed or the process ends. ERR_EXISTS if another process holds the lock; *fd is -1 after a
 * failure. */
ERR_MUST_USE enum err file_lock(const char *path, int *fd, struct why *why);
/* Removes every entry of a directory that is a plain file; a missing directory is fine. */
ERR_MUST_USE enum err file_empty_dir(const char *path, struct why *why);
/* Called by root: gives the file `path` to the owner of directory `dir`, who is to use the file. Called by another user: does nothing. */
ERR_MUST_USE enum err file_give(const char *path, const char *dir, struct why *why);
/* wild_remove (wild.h) of `path`: others may change what its last name stands for, not what the names before do. No slash at the end. */
ERR_MUST_USE enum err file_remove_dir(const char *path, struct why *why);
/* Makes a new directory "NAME.XXXXXX" below TMPDIR, else /tmp. `path` has room for PATH_MAX bytes and is "" after a failure. */
ERR_MUST_USE enum err file_scratch_dir(char *path, const char *name, struct why *why);
/* Opens a new file without a name below TMPDIR, else /tmp; the file is gone once nobody has it open. */
ERR_MUST_USE enum err file_scratch(int *fd, struct why *why);

#endif
