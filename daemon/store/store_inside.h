#ifndef STORE_INSIDE_H
#define STORE_INSIDE_H
#include <sqlite3.h>

#include "member.h"
#include "store.h"

/* Shared by the files of this room alone, the only ones that know SQLite. */

struct store_statement {
	const char *sql;
	sqlite3_stmt *st;
};

/* A connection. Its statements are prepared at first use and finalized at close; one thread at a time uses it. */
struct store_db {
	sqlite3 *sql;
	struct store_statement
	    *statements; /* by the addresses of their texts, as bytes_place has them */
	size_t statement_count, statement_room;
	struct why last; /* SQLite's words about the last failure; "" if none */
	bool unjudged; /* rows are read whether or not their checksums match */
	bool torn; /* opening has left out the last commit of the log, whose checksum is wrong */
	bool proved; /* the last row read has a checksum, and matches it */
};

/* One table of fields per row struct serves binding and reading, so both keep the order of the columns. */
enum store_type {
	STORE_BLOB, /* exactly `size` bytes */
	STORE_TEXT, /* a zero-terminated array of `size` bytes */
	STORE_LONG_TEXT, /* char *; its length is the size_t at `size` in the row, or with 0 it is a C string or NULL */
	STORE_LONG_BLOB, /* uint8_t *; its length is the size_t at `size` in the row */
	STORE_UNSIGNED, /* uint64_t below 2^63, so that SQLite sorts it right */
	STORE_ANY64, /* uint64_t without order */
	STORE_REAL, /* NaN is stored as NULL */
	STORE_BOOL,
	STORE_DEVICE_STATE, /* stored, as the three types below, as the name of the value */
	STORE_DEVICE_CLAIM,
	STORE_JOB_STATE,
	STORE_ROUND_OUTCOME
};

struct store_field {
	enum store_type type;
	size_t offset, size;
};

struct store_table {
	size_t count;
	const struct store_field *fields;
};
#define STORE_TABLE(fields) \
	{ \
		sizeof(fields) / sizeof((fields)[0]), fields \
	}

/* A statement being bound and stepped. The first error stays in `e`; every later call does nothing. */
struct store_query {
	struct store_db *db;
	sqlite3_stmt *st;
	int bound; /* parameters bound so far */
	enum err e;
};

/* sql is a constant of the program, by whose address its statement is found again. ERR_STATE in the query if that is being stepped already. */
struct store_query store_query_begin(struct store_db *db, const char *sql);
/* Bind the next parameter. Nothing is copied: pointers must live until the query ends. */
void store_query_blob(struct store_query *q, const void *data, size_t len);
void store_query_text(struct store_query *q, const char *s, size_t len, size_t max);
void store_query_unsigned(struct store_query *q, uint64_t v);
/* Binds the name of a state; NULL, a state without a name, is ERR_INVALID. */
void store_query_word(struct store_query *q, const char *word);
void store_query_row(struct store_query *q, const struct store_table *t, const void *from);
/* The loop of an `each`: true with the next row, false at the end or after an error. */
bool store_query_next(struct store_query *q, const struct store_table *t, void *row);
/* Four ways to end: after a loop; a statement without rows; one row; one row whose STORE_LONG_TEXT at *text becomes the
 * caller's. */
ERR_MUST_USE enum err store_query_end(struct store_query *q);
ERR_MUST_USE enum err store_query_done(struct store_query *q);
ERR_MUST_USE enum err store_query_one(
    struct store_query *q, const struct store_table *t, void *row);
ERR_MUST_USE enum err store_query_one_owned(
    struct store_query *q, const struct store_table *t, void *row, char **text, const size_t *len);

/*
 * sums.c: checksums of rows. A checksum finds accidents of the disk, not attackers, and covers columns that nothing else proves: a
 * job's document is left out, as the job's id is its hash. Triggers of our connections write the checksums. A change by another
 * program removes a row's checksum; rows of an older database have none until store_fill.
 */
#define STORE_SUM_DEVICE \
	"id, spki, name, role, state, labels, joined_at, previous, ca_generation, rotations_at, " \
	"key_at, restored_key_at, claim"
#define STORE_SUM_KEY "key, device, retired_at, retired_after"
#define STORE_SUM_CLAIM "device, spki, issued_at"
/* Of version 8: a text of schema.c has it, so that it never changes. */
#define STORE_SUM_TOKEN_8 \
	"id, secret_hash, role, labels, uses, uses_left, created_at, expires_at, revoked, " \
	"access, name, name_prefix, owner"
#define STORE_SUM_TOKEN STORE_SUM_TOKEN_8 ", suspended"
#define STORE_SUM_JOB "id, state, reason, created_at, owner, ended_at"
#define STORE_SUM_ROUND \
	"job, round, state, base, model, optimizer_state, reports, invited, aborted, reopened, " \
	"goal, examples, bytes_up, bytes_down, loss, accuracy, norm, eval_known, eval_examples, " \
	"eval_loss, eval_accuracy, eval_own, measured, opened_at, closed_at, reason"
#define STORE_SUM_ACCEPT \
	"job, round, device, task, manifest, receipt, report, body_bytes, accepted_at, folded"
#define STORE_SUM_MODEL "id, bytes, job, round, created_at, owner"
#define STORE_SUM_PAST \
	"id, owner, name, state, reason, priority, created_at, ended_at, round, " \
	"rounds_committed, base, model, model_bytes, parameters, metric_known, metric_examples, " \
	"metric_loss, metric_accuracy, metric_round, is_guarded, has_best, bad, rollbacks, " \
	"base_round, best_round, best_model, best_value, only_evaluates, monitor, monitor_rises, " \
	"keep_last, keep_every"
#define STORE_SUM_SPEED \
	"job, device, slot, serial, steps, seconds, samples, up_bytes, up_seconds, at"
#define STORE_SUM_SIZED "job, round, device, steps"
#define STORE_SUM_OUT "job, device, round, at"
#define STORE_SUM_EVALUATION "job, round, device, task, manifest, receipt, report, accepted_at"
/* Does the row match its checksum? STORE_JUDGED is that as the last column of a query, 2 for a row without a checksum: store_query_next
 * and the ends of a query return no row that does not match. */
#define STORE_SOUND(columns) "(checksum IS NULL OR checksum = row_checksum(" columns "))"
#define STORE_JUDGED(name, columns) \
	", CASE WHEN checksum IS NULL THEN 2 ELSE checksum = row_checksum(" columns \
	") END AS \"row of table " name "\""
struct store_sums;
/* Defines SQL's row_checksum, which the texts above call, for a connection: every connection needs it. */
ERR_MUST_USE enum err store_sums_register(struct store_db *db);
/* Makes the triggers that write checksums: for every connection that writes to a database of the present version. */
ERR_MUST_USE enum err store_sums_keep(struct store_db *db);
ERR_MUST_USE enum err store_sums_new(struct store_sums **out);
void store_sums_free(struct store_sums *s);
/* A store_work for store_fill: gives some rows the checksums that they lack. */
ERR_MUST_USE enum err store_sums_work(struct store_db *db, void *sums, struct why *why);
bool store_sums_filled(const struct store_sums *s);

/* The error for SQLite's extended result code; SQLite's words go into db->last. */
enum err store_schema_error(struct store_db *db, int rc);
/* schema.c: opens path, checks the file and brings it to the present version; fresh: makes the file. */
ERR_MUST_USE enum err store_schema_open(
    struct store_db *db, const char *path, bool fresh, struct why *why);
/* store.c: for store_create. ERR_EXISTS if there is a file. */
ERR_MUST_USE enum err store_open_fresh(struct store **out, const char *path, struct why *why);
/* A second connection, which cannot write, to a file opened before. */
ERR_MUST_USE enum err store_schema_open_reader(
    struct store_db *db, const char *path, struct why *why);
/* Steps of opening, for inspect.c: connects and runs the pragmas; runs SQL without results; checks that the database is a coordinator's
 * and returns its version (0: empty). Reasons are in db->last. */
ERR_MUST_USE enum err store_schema_connect(
    struct store_db *db, const char *path, const char *pragmas);
ERR_MUST_USE enum err store_schema_execute(struct store_db *db, const char *sql);
ERR_MUST_USE enum err store_schema_version(struct store_db *db, uint64_t *version);
/* The version that this program writes. */
uint64_t store_schema_known(void);
/* ERR_CORRUPT unless the database has the tables, indexes and triggers of that version. */
ERR_MUST_USE enum err store_schema_compare(struct store_db *db, uint64_t version);
/* Closes a connection, also one whose opening failed half-way, or that is all zero. */
void store_schema_close(struct store_db *db);

#endif
