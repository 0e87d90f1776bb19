#ifndef SPENT_H
#define SPENT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

struct shared;
struct store;
struct store_db;

/*
 * What identities have used lately: changes in an hour, bytes in a day. An identity is 32 bytes (identity.owner). Any thread; only
 * spent_load waits for the disk. Without memory for a new identity, it is told to come again in a second.
 */
struct spent;

enum spent_kind {
	SPENT_ROWS, /* in the database: documents, overrides, entries of the audit log */
	SPENT_LINES, /* in the log */
	SPENT_KINDS
};

ERR_MUST_USE enum err spent_new(struct spent **out);
/* NULL is legal for each call with a struct spent but spent_count: nothing is counted and nothing refused. */
void spent_free(struct spent *s);
/* Reads the last day's bytes from the database: before anything is counted. */
ERR_MUST_USE enum err spent_load(struct spent *s, struct store *store, struct why *why);

/* Counts a change unless `most` were made in the last hour (0: no limit; one comes free each 1/most of an hour). Returns 0, or the seconds
 * until the change may be made. */
uint32_t spent_change(struct spent *s, const uint8_t who[32], uint32_t most);
/* Counts bytes that are about to be written, unless the identity would have more than `most` in the last day (0: no limit). Returns 0, or
 * the seconds until there is room again. */
struct spent_bytes {
	enum spent_kind kind;
	uint64_t bytes, most;
};
uint32_t spent_take(struct spent *s, const uint8_t who[32], const struct spent_bytes *b);
/* Takes back bytes that spent_take has counted and that were not written. */
void spent_give(struct spent *s, const uint8_t who[32], enum spent_kind kind, uint64_t bytes);
/* Stores bytes that spent_take has counted as SPENT_ROWS: inside the transaction that writes them. */
ERR_MUST_USE enum err spent_store(
    struct spent *s, struct store_db *db, const uint8_t who[32], uint64_t bytes);

/* Counts a log line of about `bytes` that the identity has caused. May the line be logged? At the first that may not, once in an hour, a
 * warning is logged in its place. */
bool spent_line(struct spent *s, const uint8_t who[32], uint64_t bytes, uint64_t most);
/* The same within [limits] owner_bytes_per_day: a line of `text` bytes beside the usual ones. */
bool spent_log(struct spent *s, struct shared *config, const uint8_t who[32], size_t text);

/* The number of identities that are known. */
uint64_t spent_count(struct spent *s);

#endif
