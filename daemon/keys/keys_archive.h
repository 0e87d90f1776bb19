#ifndef KEYS_ARCHIVE_H
#define KEYS_ARCHIVE_H
#include "keys.h"
#include "services_ca.h"
#include "ustar.h"

/*
 * All of keys/ in one file (ustar.h), to be kept elsewhere: for `rivuletd keys`, and for backups that take the keys with them. Only
 * files that a coordinator knows go in and come out. Blocking.
 */
#define KEYS_ARCHIVE_MAX (1u << 20)

/* fn for each file of state_dir/keys that a coordinator knows, in the order of their names; what else lies there is passed over. Stops
 * at fn's first error. ERR_NOTFOUND if there is no such folder. */
ERR_MUST_USE enum err keys_archive_each(const char *state_dir,
    enum err (*fn)(void *ctx, const char *name, struct why *why), void *ctx, struct why *why);
/* The archive of state_dir/keys, in out, which is empty and of KEYS_ARCHIVE_MAX; the caller wipes and ends it (keys_archive_wipe), also
 * on failure. Fails as keys_check: what is not complete is not archived. */
ERR_MUST_USE enum err keys_archive_pack(const char *state_dir, struct buf *out, struct why *why);
void keys_archive_wipe(struct buf *archive);

/* As ustar_next. ERR_INVALID also for a name that no coordinator knows, ERR_LIMIT for a file that is too large. */
ERR_MUST_USE enum err keys_archive_next(
    struct ustar_reader *r, struct ustar_file *out, struct why *why);
/* Writes an archive's files to dir/keys, which is new or empty, and looks whether they are complete and of one coordinator: *ca is its
 * CA. Fails as keys_archive_next and keys_check; what was written stays. */
ERR_MUST_USE enum err keys_archive_unpack(
    const char *dir, const struct buf *archive, struct services_ca **ca, struct why *why);
/* Is every file of state_dir/keys in dir/keys, too, with the same bytes? ERR_EXISTS names one that is not. */
ERR_MUST_USE enum err keys_archive_compare(const char *dir, const char *state_dir, struct why *why);
/* Moves from dir/keys to state_dir/keys what is not there yet; *moved counts. Fails as keys_archive_compare, and then moves nothing. */
ERR_MUST_USE enum err keys_archive_adopt(
    const char *dir, const char *state_dir, size_t *moved, struct why *why);

#endif
