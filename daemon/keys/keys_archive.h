#ifndef KEYS_ARCHIVE_H
#define KEYS_ARCHIVE_H
#include "keys.h"
#include "services_ca.h"
#include "ustar.h"

/*
 * All of keys/ in one file (ustar.h), to be kept elsewhere: for `rivuletd keys`, and for backups that include the keys. Only
 * files that a coordinator knows are archived and extracted. Blocking.
 */
#define KEYS_ARCHIVE_MAX (1u << 20)

/* Calls fn for each file of state_dir/keys that a coordinator knows, in the order of their names; other files are passed over. Stops
 * at fn's first error. ERR_NOTFOUND if there is no such folder. */
ERR_MUST_USE enum err keys_archive_each(const char *state_dir,
    enum err (*fn)(void *ctx, const char *name, struct why *why), void *ctx, struct why *why);
/* The archive of state_dir/keys, in out, which is empty and of KEYS_ARCHIVE_MAX; the caller wipes and ends `out` (keys_archive_wipe), also
 * on failure. Fails as keys_check: keys/ is archived only if complete. */
ERR_MUST_USE enum err keys_archive_pack(const char *state_dir, struct buf *out, struct why *why);
void keys_archive_wipe(struct buf *archive);

/* As ustar_next. ERR_INVALID also for a name that no coordinator knows, ERR_LIMIT for a file that is too large. */
ERR_MUST_USE enum err keys_archive_next(
    struct ustar_reader *r, struct ustar_file *out, struct why *why);
/* Writes an archive's files to dir/keys, which is new or empty, and checks that they are complete and of one coordinator: *ca is its
 * CA. Fails as keys_archive_next and keys_check; files that were written stay. */
ERR_MUST_USE enum err keys_archive_unpack(
    const char *dir, const struct buf *archive, struct services_ca **ca, struct why *why);
/* Is every file of state_dir/keys in dir/keys, too, with the same bytes? ERR_EXISTS: why names a file that is not. */
ERR_MUST_USE enum err keys_archive_compare(const char *dir, const char *state_dir, struct why *why);
/* Moves from dir/keys the files that state_dir/keys does not have yet; *moved counts them. Fails as keys_archive_compare, and then moves
 * nothing. */
ERR_MUST_USE enum err keys_archive_adopt(
    const char *dir, const char *state_dir, size_t *moved, struct why *why);

#endif
