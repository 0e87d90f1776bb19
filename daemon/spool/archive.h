#ifndef ARCHIVE_H
#define ARCHIVE_H
#include "spool.h"

/*
 * The folder kept/: deltas of ended rounds, so that the rounds can be folded again ([retention] keep_deltas). The files are those of the
 * spool, encrypted with the spool's key. When a limit is passed, the deltas that came first are removed first, whatever the clock did. Any
 * thread; calls may wait for the disk.
 */
struct archive;
struct archive_report; /* report.h */

/* Opens the archive and removes nothing, also if keep_deltas is off now. The spool must outlive the archive. */
ERR_MUST_USE enum err archive_open(
    struct archive **out, const char *dir, struct spool *spool, struct why *why);
void archive_close(struct archive *k);
/* Moves an accepted delta from the spool into the archive, and first removes the oldest deltas until all fit into `limit` bytes (0: no
 * limit); a delta larger than `limit` stays in the spool. ERR_NOTFOUND if the spool does not have the delta. Durable after archive_sync. */
ERR_MUST_USE enum err archive_add(
    struct archive *k, const uint8_t task[16], uint64_t limit, struct why *why);
ERR_MUST_USE enum err archive_sync(struct archive *k, struct why *why);
/* As spool_read. */
ERR_MUST_USE enum err archive_read(
    struct archive *k, const uint8_t task[16], struct delta_file *file, struct why *why);
/* Looks for a delta; removes a delta. Both return ERR_NOTFOUND if the archive does not have the delta. */
ERR_MUST_USE enum err archive_find(struct archive *k, const uint8_t task[16]);
ERR_MUST_USE enum err archive_remove(struct archive *k, const uint8_t task[16]);
/* Removes all deltas whose heads name the device; *count of them. A delta whose head cannot be read stays, and the first error is
 * returned. */
ERR_MUST_USE enum err archive_remove_device(
    struct archive *k, const uint8_t device[32], uint64_t *count, struct why *why);
void archive_report(struct archive *k, struct archive_report *out);

#endif
