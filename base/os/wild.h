#ifndef WILD_H
#define WILD_H
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/*
 * Directories that somebody hostile can change, also during a call: links, pipes, directories that become links while they are walked
 * through, trees of any depth, modes that keep out. These calls use descriptors and follow no link; they open only regular files with one
 * name, and opening does not wait.
 *
 * A `name` is one path component, and never "." or "..". A file that is not as described gives ERR_INVALID; names in `why` are cut.
 */

/* Opens the directory `path`, of which others can change only the last name, and gives its owner the right to enter and change it. *fd is
 * -1 after a failure. */
ERR_MUST_USE enum err wild_directory(int *fd, const char *path, struct why *why);
/* Creates a directory, mode 0700, and opens it. ERR_EXISTS if the name is taken. *fd is -1 after a failure. */
ERR_MUST_USE enum err wild_make(int *fd, int directory, const char *name, struct why *why);
/* Opens a file for reading. ERR_NOTFOUND if there is none, ERR_LIMIT if the file has more than max bytes. *fd is -1 after a failure. */
ERR_MUST_USE enum err wild_open(
    int *fd, int directory, const char *name, uint64_t max, struct why *why);
/* Reads a whole file once, with a zero byte after it; the caller frees *data. Errors of wild_open; ERR_CORRUPT if the file was cut short
 * meanwhile. */
ERR_MUST_USE enum err wild_read(
    int directory, const char *name, size_t max, char **data, size_t *len, struct why *why);
/* Creates a file, mode 0600, and opens it for writing. ERR_EXISTS if the name is taken. *fd is -1 after a failure. */
ERR_MUST_USE enum err wild_create(int *fd, int directory, const char *name, struct why *why);
/* Removes an entry of any kind, a directory with all that is in it; a missing entry is fine. The removal stays within the directory and its
 * file system, needs no more memory or descriptors for a deep tree, and enters directories of this user whose mode forbids it. ERR_TIMEOUT:
 * the directory is not empty after WILD_REMOVE_S; another call goes on. */
ERR_MUST_USE enum err wild_remove(int directory, const char *name, struct why *why);
#define WILD_REMOVE_S 60
/* As wild_remove, of everything in an open directory. */
ERR_MUST_USE enum err wild_empty(int directory, struct why *why);

#endif
