#ifndef DELETE_ROWS_H
#define DELETE_ROWS_H
#include "store.h"

/*
 * Jobs that are deleted: what a job's rows hold goes, also the details of its entries in the audit log that are its own words or name
 * its devices. The entries stay, and a tombstone: the same document would make the same task ids again.
 */

/* The tasks of the accepted deltas of rounds from..to. */
ERR_MUST_USE enum err store_delete_tasks(struct store_db *db, const uint8_t job[16], uint64_t from,
    uint64_t to, enum err (*fn)(void *ctx, const uint8_t task[16], uint64_t bytes), void *ctx);
/* Accepted deltas of these rounds, and the details of their records. */
ERR_MUST_USE enum err store_delete_reports(
    struct store_db *db, const uint8_t job[16], uint64_t from, uint64_t to);
/* The rest: rounds, job, its document in the audit log; leaves the tombstone. ERR_NOTFOUND. */
ERR_MUST_USE enum err store_delete_job(struct store_db *db, const uint8_t job[16], double now);
/* Is there a tombstone? ERR_NOTFOUND. */
ERR_MUST_USE enum err store_delete_known(struct store_db *db, const uint8_t job[16]);
/* Is there one, of another owner's job? ERR_NOTFOUND, also where nobody knows whose it was. */
ERR_MUST_USE enum err store_delete_foreign(
    struct store_db *db, const uint8_t job[16], const uint8_t owner[32]);

#endif
