#ifndef STORE_INSIDE_H
#define STORE_INSIDE_H
#include <sqlite3.h>

#include "store.h"

/* Shared by store*.c alone, the only files that know SQLite. */

/* Places in a connection's cache: those of store_rows.c, store.c, store_audit.c, store_identity.c, delete_rows.c,
 * metric_rows.c, past_rows.c, model_rows.c, override_rows.c and task_rows.c begin here. */
enum {
	STORE_ROW_STATEMENTS = 40,
	STORE_AUDIT_STATEMENTS = 48,
	STORE_IDENTITY_STATEMENTS = 68,
	STORE_DELETE_STATEMENTS = 92,
	STORE_METRIC_STATEMENTS = 110,
	STORE_PAST_STATEMENTS = 117,
	STORE_MODEL_STATEMENTS = 122,
	STORE_OVERRIDE_STATEMENTS = 128,
	STORE_TASK_STATEMENTS = 133,
	STORE_STATEMENTS = 144
};

/* A connection. Its statements are prepared at first use and finalized at close; one thread at a time uses it. */
struct store_db {
	sqlite3 *sql;
	sqlite3_stmt *cache[STORE_STATEMENTS];
	struct why last; /* SQLite's words about the last failure; "" if none */
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
	STORE_DEVICE_STATE, /* these four are stored as their names */
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

/* A statement being bound and stepped. The first error sticks; every later call does nothing. */
struct store_query {
	struct store_db *db;
	sqlite3_stmt *st;
	int bound; /* parameters bound so far */
	enum err e;
};

/* ERR_STATE in the query if this statement is being stepped already. */
struct store_query store_query_begin(struct store_db *db, int slot, const char *sql);
/* Bind the next parameter. Nothing is copied: pointers must live until the query ends. */
void store_query_blob(struct store_query *q, const void *data, size_t len);
void store_query_text(struct store_query *q, const char *s, size_t len, size_t max);
void store_query_unsigned(struct store_query *q, uint64_t v);
/* Of a state; one without a name is ERR_INVALID. */
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
/* Steps of opening, for store_inspect.c: connects and runs the pragmas; one text of SQL without results; is this a database
 * of ours, and of which version (0: an empty one)? Reasons are in db->last. */
ERR_MUST_USE enum err store_schema_connect(
    struct store_db *db, const char *path, const char *pragmas);
ERR_MUST_USE enum err store_schema_execute(struct store_db *db, const char *sql);
ERR_MUST_USE enum err store_schema_version(struct store_db *db, uint64_t *version);
/* The version that this program writes. */
uint64_t store_schema_known(void);
/* Also for a connection that was opened half, or is all zero. */
void store_schema_close(struct store_db *db);

#endif
