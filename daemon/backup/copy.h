#ifndef COPY_H
#define COPY_H
#include "list.h"

/*
 * Copying one file into a backup or out of it: under a temporary name first, mode 0600, hashed on the way, synced. No faster than
 * the pace allows, because a running coordinator shares the disk.
 */
struct backup_pace {
	uint64_t rate; /* bytes per second; 0: no limit */
	uint64_t begun_ms, bytes; /* zero at first */
};

/* Counts bytes and sleeps as long as they are ahead of the rate. pace: a struct backup_pace. */
void backup_copy_wait(void *pace, uint64_t bytes);
/* Copies from_dir/name (or from, if not NULL) to to_dir/name (or to_dir/as, if not NULL); entry gets name, length and hash. ERR_NOTFOUND if
 * the source does not exist; ERR_EXISTS if the target does. Does not sync the directory. */
struct backup_copy {
	const char *from_dir, *to_dir, *name;
	const char *from, *as;
};
ERR_MUST_USE enum err backup_copy_file(const struct backup_copy *what, struct backup_pace *pace,
    struct backup_list_entry *entry, struct why *why);

#endif
