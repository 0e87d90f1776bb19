#ifndef ARCHIVE_H
#define ARCHIVE_H
#include "spool.h"

/*
 * The folder kept/: deltas of rounds that are over, for those who will fold them again ([retention] keep_deltas). Same files as in
 * the spool, whose key opens them. The oldest go first when a limit is passed: those that came here first, whatever the clock did. Any thread; calls may wait for the disk.
 */
struct archive;
struct archive_report; /* report.h */

/* Removes nothing, also if nothing is to be kept any more. The spool must outlive it. */
ERR_MUST_USE enum err archive_open(
    struct archive **out, const char *dir, struct spool *spool, struct why *why);
void archive_close(struct archive *k);
/* Takes an accepted delta out of the spool, after it has removed the oldest until all fit `limit` bytes with it (0: no limit); one
 * that does not fit alone stays in the spool. ERR_NOTFOUND if the spool has none; after another failure it is still there. Durable
 * after archive_sync. */
ERR_MUST_USE enum err archive_add(
    struct archive *k, const uint8_t task[16], uint64_t limit, struct why *why);
ERR_MUST_USE enum err archive_sync(struct archive *k, struct why *why);
/* As spool_read. */
ERR_MUST_USE enum err archive_read(
    struct archive *k, const uint8_t task[16], struct delta_file *file, struct why *why);
/* ERR_NOTFOUND if it is not there; both. */
ERR_MUST_USE enum err archive_find(struct archive *k, const uint8_t task[16]);
ERR_MUST_USE enum err archive_remove(struct archive *k, const uint8_t task[16]);
/* Removes all deltas of a device, by their heads; *count of them. What cannot be read stays, with the first error. */
ERR_MUST_USE enum err archive_remove_device(
    struct archive *k, const uint8_t device[32], uint64_t *count, struct why *why);
void archive_report(struct archive *k, struct archive_report *out);

#endif
