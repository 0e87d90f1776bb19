#ifndef WILD_H
#define WILD_H
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/*
 * Directories in which somebody else may do as he likes, now as well: links, pipes, directories that become links while they are
 * walked through, trees of any depth, modes that keep out. Everything goes by descriptors and follows no link; what is opened is a
 * regular file with one name, and opening does not wait.
 *
 * `name`s are single names, and never "." or "..". What is not as it should be is ERR_INVALID; names in `why` are cut.
 */

/* A directory of that path, of which only the last name is of others; its user may enter and change it then. *fd is -1 after a
 * failure. */
ERR_MUST_USE enum err wild_directory(int *fd, const char *path, struct why *why);
/* Makes a directory that must not be there, mode 0700, and opens it. ERR_EXISTS. *fd is -1 after a failure. */
ERR_MUST_USE enum err wild_make(int *fd, int directory, const char *name, struct why *why);
/* To read. ERR_NOTFOUND without one, ERR_LIMIT if it has more than max bytes. *fd is -1 after a failure. */
ERR_MUST_USE enum err wild_open(
    int *fd, int directory, const char *name, uint64_t max, struct why *why);
/* The whole file, read once, with a zero byte after it; the caller frees *data. As wild_open; ERR_CORRUPT: it was cut meanwhile. */
ERR_MUST_USE enum err wild_read(
    int directory, const char *name, size_t max, char **data, size_t *len, struct why *why);
/* A file that must not be there, mode 0600, to write. ERR_EXISTS. *fd is -1 after a failure. */
ERR_MUST_USE enum err wild_create(int *fd, int directory, const char *name, struct why *why);
/* rm -r, whatever it is; something that is not there is fine. It stays within the directory and its file system, needs no more
 * memory and descriptors for a deep tree, and gets into directories of its user that nobody may enter. ERR_TIMEOUT: it is not empty
 * after WILD_REMOVE_S; the next call goes on. */
ERR_MUST_USE enum err wild_remove(int directory, const char *name, struct why *why);
#define WILD_REMOVE_S 60
/* As wild_remove, of all that lies in an open directory. */
ERR_MUST_USE enum err wild_empty(int directory, struct why *why);

#endif
