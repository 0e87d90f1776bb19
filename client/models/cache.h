#ifndef CACHE_H
#define CACHE_H
#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/*
 * Models on the device's disk, HOME/models/ID.safetensors, named by their hash and so never stale; and other files that are named by
 * their hash (client/external: examples). Their sizes together stay under max_bytes, and their number under CACHE_FILES_MAX: the files
 * unused for longest (by modification time, which use renews) go first. An interrupted download is kept beside them as ID.part, a
 * difference that leads to a model as ID.diff; both count, too.
 */
#define CACHE_FILES_MAX \
	64 /* as many as an offer names; every request for work looks at all of them */
#define CACHE_ID_HEX 65

struct cache {
	char dir[PATH_MAX - 128];
	uint64_t max_bytes;
};

/* Makes the directory, HOME/FOLDER. */
ERR_MUST_USE enum err cache_init(
    struct cache *c, const char *home, const char *folder, uint64_t max_bytes, struct why *why);
/* The path of a model of exactly `bytes` bytes, which is marked as used; ERR_NOTFOUND if the cache does not have it. */
ERR_MUST_USE enum err cache_find(
    const struct cache *c, const char *id, uint64_t bytes, char path[PATH_MAX]);
/* cache_find for a model of any length, which goes to *bytes. */
ERR_MUST_USE enum err cache_held(
    const struct cache *c, const char *id, uint64_t *bytes, char path[PATH_MAX]);
/* Reads a model that cache_find found and compares its hash with `id`. ERR_CORRUPT: the hash differs, and the file was removed. */
ERR_MUST_USE enum err cache_check(const struct cache *c, const char *id, struct why *why);
/* Opens ID.part for reading and writing, made if absent; the caller closes *fd. */
ERR_MUST_USE enum err cache_part(const struct cache *c, const char *id, int *fd, struct why *why);
/* cache_part for ID.diff; cache_drop_difference removes ID.diff. */
ERR_MUST_USE enum err cache_difference(
    const struct cache *c, const char *id, int *fd, struct why *why);
void cache_drop_difference(const struct cache *c, const char *id);
/* Bytes of ID.part; 0 if there is none. */
uint64_t cache_begun(const struct cache *c, const char *id);
/* Removes old models until a model of `bytes` bytes fits, ID.part and ID.diff of `id` not counted. ERR_LIMIT if it can never fit. */
ERR_MUST_USE enum err cache_make_room(
    const struct cache *c, const char *id, uint64_t bytes, struct why *why);
/* Turns ID.part, complete and checked by the caller, into the model; durable. */
ERR_MUST_USE enum err cache_commit(
    const struct cache *c, const char *id, int fd, char path[PATH_MAX], struct why *why);
/* Ids of the models held, latest used first; returns how many were written, at most max. */
size_t cache_list(const struct cache *c, char (*ids)[CACHE_ID_HEX], size_t max);

#endif
