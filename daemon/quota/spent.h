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
 * What identities have spent lately, by 32 bytes each. Any thread; never waits for the disk, but for loading. Without memory for a
 * new identity it is told to come again in a second.
 */
struct spent;

enum spent_kind {
	SPENT_ROWS, /* in the database: documents, overrides, entries of the audit log */
	SPENT_LINES, /* in the log */
	SPENT_KINDS
};

ERR_MUST_USE enum err spent_new(struct spent **out);
/* NULL is legal, here and below: then nothing is counted and nothing refused. */
void spent_free(struct spent *s);
/* Reads what the database knows of the last day: before anybody spends. */
ERR_MUST_USE enum err spent_load(struct spent *s, struct store *store, struct why *why);

/* Counts a change, each of which keeps busy for its share of an hour of `most`; 0: no limit. Returns 0, or the seconds until it may. */
uint32_t spent_change(struct spent *s, const uint8_t who[32], uint32_t most);
/* Counts bytes that are about to be written, unless the last day would have more than `most` with them (0: no limit). Returns 0, or
 * the seconds until there is room again. */
struct spent_bytes {
	enum spent_kind kind;
	uint64_t bytes, most;
};
uint32_t spent_take(struct spent *s, const uint8_t who[32], const struct spent_bytes *b);
/* They were not written. */
void spent_give(struct spent *s, const uint8_t who[32], enum spent_kind kind, uint64_t bytes);
/* Inside the transaction that writes what spent_take has counted as SPENT_ROWS. */
ERR_MUST_USE enum err spent_store(
    struct spent *s, struct store_db *db, const uint8_t who[32], uint64_t bytes);

/* A line of about so many bytes that somebody caused: may it go to the log? The first that may not is told of in its place, once in
 * an hour. */
bool spent_line(struct spent *s, const uint8_t who[32], uint64_t bytes, uint64_t most);
/* The same within [limits] owner_bytes_per_day: a line of `text` bytes beside the usual ones. */
bool spent_log(struct spent *s, struct shared *config, const uint8_t who[32], size_t text);

/* So many identities are known. */
uint64_t spent_count(struct spent *s);

#endif
