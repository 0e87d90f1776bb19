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
 * one than theirs, or an older one. Each file keeps its name with a number behind it, and its date says when it was set aside. Only the
 * erasure of a device removes files here; else people do (`rivuletd check --delete-lost`). With `[spool] path` deltas have a lost/ there.
 */
struct lost_report; /* report.h */

/* The folder for lost deltas by this configuration; out has CONFIG_PATH_MAX + 16 bytes. */
void spool_lost_dir(const struct config *c, char *out);
/* Any thread; reads the folders. */
void spool_lost_report(const struct config *c, struct lost_report *out);
/* How many deltas spool_recover has set aside. */
uint64_t spool_lost_found(const struct spool *s);
/* Counts the lost deltas that are there now against the quota: people remove them while a coordinator runs. One thread at a time. */
void spool_lost_count(struct spool *s);
/* Removes the lost deltas whose heads name the device; adds to *count. A delta whose head cannot be read stays, and the first error is
 * returned. */
ERR_MUST_USE enum err spool_lost_remove_device(
    struct spool *s, const uint8_t device[32], uint64_t *count, struct why *why);
/* Does the database hold the row of an accepted delta with this manifest, or the tombstone of its job? */
bool spool_lost_has_row(struct store *store, const struct manifest *m);

#endif
