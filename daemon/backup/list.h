#ifndef LIST_H
#define LIST_H
#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "hash.h"

/*
 * MANIFEST.json of a backup: its files, with length and SHA-256 each. MANIFEST.json is written last, so a directory that has
 * one is a whole backup. The first start from a restored directory removes it.
 *
 *   {"rivulet": "backup", "version": 1, "made_by": "1.1.0+...", "made_at": Unix seconds, "incarnation": n, "keys": bool,
 *    "files": [{"name": "models/<id>", "bytes": n, "sha256": hex}, ...]}
 */
#define BACKUP_LIST_NAME "MANIFEST.json"
#define BACKUP_LIST_MAX (32u << 20)

struct backup_list_entry {
	char name[160]; /* relative: rivulet.db, or in keys/, models/ or spool/ */
	uint64_t bytes;
	uint8_t sha256[HASH_LEN];
};

/* ERR_LIMIT if the names of a backup's files do not fit behind this one. */
ERR_MUST_USE enum err backup_list_room(const char *dir, struct why *why);
/* Building: start, add, save. The tree is the caller's. */
struct json *backup_list_new(uint64_t incarnation, bool keys);
void backup_list_add(struct json *list, const struct backup_list_entry *entry);
ERR_MUST_USE enum err backup_list_save(const struct json *list, const char *dir, struct why *why);

/* Reads dir's list. ERR_NOTFOUND if dir has none, ERR_CORRUPT if the list cannot be read, ERR_UNSUPPORTED if a newer program wrote it. */
ERR_MUST_USE enum err backup_list_load(struct json **out, const char *dir, struct why *why);
/* Calls fn for each file of a loaded list; stops at fn's first error. ERR_CORRUPT for an entry that is not as above. */
ERR_MUST_USE enum err backup_list_each(const struct json *list,
    enum err (*fn)(void *ctx, const struct backup_list_entry *entry, struct why *why), void *ctx,
    struct why *why);
/* Compares dir with its list; calls differs for each file that is missing or not as listed. Errors as backup_list_load. */
ERR_MUST_USE enum err backup_list_verify(const char *dir,
    void (*differs)(void *ctx, const char *name, const char *what), void *ctx, struct why *why);

#endif
