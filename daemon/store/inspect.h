#ifndef INSPECT_H
#define INSPECT_H
#include <stdbool.h>
#include <stdint.h>

#include "err.h"

struct store_db;

/*
 * A database read from outside, by `rivuletd check`, `backup` and `restore`, whether or not its coordinator runs. The
 * database is never made and never migrated, and without `write` its file stays as it is. One thread. The store_*_each and
 * store_*_get of store.h take the connection that store_inspect_open makes.
 */

/* *version: the schema version of the file; rows can be read only if *version is store_inspect_known(). ERR_NOTFOUND, ERR_CORRUPT,
 * ERR_UNSUPPORTED if a newer program wrote the file. */
ERR_MUST_USE enum err store_inspect_open(
    struct store_db **out, const char *path, bool write, uint64_t *version, struct why *why);
void store_inspect_close(struct store_db *db);
/* SQLite's words about the last failure; "" if none. */
const char *store_inspect_why(const struct store_db *db);
/* The schema version that this program writes. */
uint64_t store_inspect_known(void);

/* Begins a transaction: with `write` nobody else can write until its end; without, all reads see one state. */
ERR_MUST_USE enum err store_inspect_begin(struct store_db *db, bool write, struct why *why);
ERR_MUST_USE enum err store_inspect_commit(struct store_db *db, struct why *why);
void store_inspect_rollback(struct store_db *db);

/* SQLite's own checks: fn gets one line per fault, at most 100 of pages and indexes and 100 of references between rows. */
ERR_MUST_USE enum err store_inspect_faults(
    struct store_db *db, void (*fn)(void *ctx, const char *line), void *ctx, struct why *why);
/* Compares rows with their checksums: fn gets table and key of each row that does not match; *missing counts rows without a checksum yet.
 * Only for a database of the version store_inspect_known(). A connection of this header reads rows that do not match; for any other
 * connection such a row is ERR_CORRUPT. */
ERR_MUST_USE enum err store_inspect_sums(struct store_db *db,
    void (*fn)(void *ctx, const char *table, const char *row), void *ctx, uint64_t *missing,
    struct why *why);
/* Does the row that was read last have a checksum, and match it? */
bool store_inspect_proved(const struct store_db *db);
/* Is the schema the one that programs of this version make? ERR_CORRUPT. */
ERR_MUST_USE enum err store_inspect_schema(struct store_db *db, uint64_t version, struct why *why);
/* The first bytes of the file against what this program writes there. ERR_CORRUPT. */
ERR_MUST_USE enum err store_inspect_header(const char *path, struct why *why);
/* Copies the state that the open transaction sees into a new file, synced; pause (may be NULL) is called after each MiB.
 * ERR_EXISTS. */
ERR_MUST_USE enum err store_inspect_copy(struct store_db *db, const char *to,
    void (*pause)(void *ctx, uint64_t bytes), void *ctx, struct why *why);

#endif
