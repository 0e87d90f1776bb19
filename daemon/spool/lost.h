#ifndef LOST_H
#define LOST_H
#include <stdbool.h>
#include <stdint.h>

#include "config.h"
#include "err.h"

struct store;
struct spool;
struct manifest;

/*
 * The folder lost/: complete models and deltas that were found at a start and that no row explains, because the database is another
 * or an older one than theirs. Each has its name and a number behind it, and is dated when it was set aside. Nothing here removes
 * them but a device's erasure; people do (`rivuletd check --delete-lost`). With `[spool] path` deltas have a lost/ there.
 */
struct lost_report; /* report.h */

/* Where deltas of this configuration go; out has CONFIG_PATH_MAX + 16 bytes. */
void spool_lost_dir(const struct config *c, char *out);
/* Any thread; reads the folders. */
void spool_lost_report(const struct config *c, struct lost_report *out);
/* How many deltas spool_recover has set aside. */
uint64_t spool_lost_found(const struct spool *s);
/* Counts lost deltas against the quota as they are now: people remove them beside a coordinator. One thread at a time. */
void spool_lost_count(struct spool *s);
/* Removes a device's lost deltas, by their heads; adds to *count. What cannot be read stays, with the first error. */
ERR_MUST_USE enum err spool_lost_remove_device(
    struct spool *s, const uint8_t device[32], uint64_t *count, struct why *why);
/* Does the database hold the row of an accepted delta with this manifest, or the tombstone of its job? */
bool spool_lost_has_row(struct store *store, const struct manifest *m);

#endif
