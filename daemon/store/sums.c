#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "inspect.h"
#include "store_inside.h"

#define FUNCTION "row_checksum"
#define SQL_MAX 2048
#define BATCH 256 /* rows */
#define FILL_MS 50 /* of the store's thread at a time */
#define KEYS_MAX 3

/* A table with checksums: the columns of the key, and the columns under the checksum. Columns that a device or token changes with each
 * request are left out. */
struct summed {
	const char *table, *columns;
	bool rowid; /* the table has rowids, the fastest way to a row */
	size_t key_count;
	const char *keys[KEYS_MAX];
};

static const struct summed summed[] = {
    {"meta", "key, value", false, 1, {"key"}},
    {"device", STORE_SUM_DEVICE, true, 1, {"id"}},
    {"token", STORE_SUM_TOKEN, true, 1, {"id"}},
    {"joined", "token, spki, device", false, 2, {"token", "spki"}},
    {"device_key", STORE_SUM_KEY, false, 1, {"key"}},
    {"device_claim", STORE_SUM_CLAIM, false, 2, {"device", "spki"}},
    {"job", STORE_SUM_JOB, true, 1, {"id"}},
    {"past_job", STORE_SUM_PAST, false, 1, {"id"}},
    {"deleted_job", "id, at, owner", false, 1, {"id"}},
    {"job_override", "job, overrides", false, 1, {"job"}},
    {"job_stamp", "job, stamp", false, 1, {"job"}},
    {"round", STORE_SUM_ROUND, true, 2, {"job", "round"}},
    {"round_metric", "job, round, name, mean, reports", false, 3, {"job", "round", "name"}},
    {"round_figures", "job, round, figures", true, 2, {"job", "round"}},
    {"round_override", "job, round, overrides", false, 2, {"job", "round"}},
    {"best_model", "job, place, round, model, value", false, 2, {"job", "place"}},
    {"accept", STORE_SUM_ACCEPT, true, 3, {"job", "round", "device"}},
    {"model", STORE_SUM_MODEL, true, 1, {"id"}},
    {"audit_detail", "seq, place, device", false, 2, {"seq", "place"}},
    {"speed", STORE_SUM_SPEED, false, 3, {"job", "device", "slot"}},
    {"sized", STORE_SUM_SIZED, false, 3, {"job", "round", "device"}},
    {"task_out", STORE_SUM_OUT, false, 2, {"job", "device"}},
    {"evaluation", STORE_SUM_EVALUATION, true, 2, {"job", "round"}},
};
enum { TABLES = sizeof(summed) / sizeof(summed[0]) };

/* --- the function: 64-bit FNV-1a over type, length and bytes of each value */

static uint64_t
add(uint64_t sum, const void *data, size_t len)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < len; i++)
		sum = (sum ^ p[i]) * 0x100000001b3u;
	return sum;
}

/* Adds a number as bytes in a fixed order, so that a database may move to another machine. */
static uint64_t
add_number(uint64_t sum, uint64_t v)
{
	for (unsigned i = 0; i < 8; i++) {
		uint8_t byte = (uint8_t)(v >> (8 * i));
		sum = add(sum, &byte, 1);
	}
	return sum;
}

static uint64_t
add_value(uint64_t sum, sqlite3_value *v)
{
	int type = sqlite3_value_type(v);
	uint64_t bits = 0;
	double real;

	sum = add_number(sum, (uint64_t)type);
	switch (type) {
	case SQLITE_INTEGER:
		return add_number(sum, (uint64_t)sqlite3_value_int64(v));
	case SQLITE_FLOAT:
		real = sqlite3_value_double(v);
		memcpy(&bits, &real, sizeof(bits));
		return add_number(sum, bits);
	case SQLITE_NULL:
		return sum;
	default:
		/* A text's bytes, not those up to its first zero. */
		sum = add_number(sum, (uint64_t)sqlite3_value_bytes(v));
		const void *data =
		    type == SQLITE_BLOB ? sqlite3_value_blob(v) : sqlite3_value_text(v);
		return data ? add(sum, data, (size_t)sqlite3_value_bytes(v)) : sum;
	}
}

static void
row_checksum(sqlite3_context *ctx, int count, sqlite3_value **values)
{
	uint64_t sum = 0xcbf29ce484222325u;

	for (int i = 0; i < count; i++)
		sum = add_value(sum, values[i]);
	sqlite3_result_int64(ctx, (sqlite3_int64)sum);
}

enum err
store_sums_register(struct store_db *db)
{
	int rc = sqlite3_create_function_v2(db->sql, FUNCTION, -1,
	    SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, NULL, row_checksum, NULL, NULL,
	    NULL);

	return rc == SQLITE_OK ? ERR_OK : store_schema_error(db, rc);
}

/* --- keeping them */

/* "a = NEW.a AND b = NEW.b" */
static void
same_row(const struct summed *t, char out[256])
{
	size_t at = 0;

	out[0] = '\0';
	for (size_t i = 0; i < t->key_count; i++)
		at += (size_t)snprintf(
		    out + at, 256 - at, "%s%s = NEW.%s", i ? " AND " : "", t->keys[i], t->keys[i]);
}

static enum err
keep(struct store_db *db, const struct summed *t)
{
	char sql[2 * SQL_MAX], row[256];

	same_row(t, row);
	snprintf(sql, sizeof(sql),
	    "CREATE TEMP TRIGGER sum_new_%s AFTER INSERT ON main.%s BEGIN "
	    "UPDATE %s SET checksum = " FUNCTION "(%s) WHERE %s; END;"
	    "CREATE TEMP TRIGGER sum_changed_%s AFTER UPDATE OF %s ON main.%s BEGIN "
	    "UPDATE %s SET checksum = " FUNCTION "(%s) WHERE %s; END",
	    t->table, t->table, t->table, t->columns, row, t->table, t->columns, t->table, t->table,
	    t->columns, row);
	return store_schema_execute(db, sql);
}

enum err
store_sums_keep(struct store_db *db)
{
	enum err e = ERR_OK;

	/* Triggers of the schema, for programs that know of no checksums, would remove the checksum of each row that is changed. */
	int rc = sqlite3_db_config(db->sql, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	if (rc != SQLITE_OK)
		return store_schema_error(db, rc);
	for (size_t i = 0; i < TABLES && !e; i++)
		e = keep(db, &summed[i]);
	return e;
}

/* --- filling those of an older database */

struct store_sums {
	size_t table; /* the first that may have rows without a checksum; TABLES: none has */
	sqlite3_value *behind[KEYS_MAX]; /* the key of the last row looked at; NULL: none yet */
};

static void
forget_place(struct store_sums *s)
{
	for (size_t i = 0; i < KEYS_MAX; i++) {
		sqlite3_value_free(s->behind[i]);
		s->behind[i] = NULL;
	}
}

enum err
store_sums_new(struct store_sums **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? ERR_OK : ERR_NOMEM;
}

void
store_sums_free(struct store_sums *s)
{
	if (!s)
		return;
	forget_place(s);
	free(s);
}

static void
list_keys(const struct summed *t, char out[128])
{
	size_t at = 0;

	for (size_t i = 0; i < t->key_count; i++)
		at += (size_t)snprintf(out + at, 128 - at, "%s%s", i ? ", " : "", t->keys[i]);
}

static const char *
marks(const struct summed *t)
{
	static const char *const all[] = {"", "?", "?, ?", "?, ?, ?"};

	return all[t->key_count];
}

static int
bind_key(sqlite3_stmt *st, int from, const struct summed *t, sqlite3_value *const *key)
{
	int rc = SQLITE_OK;

	for (size_t i = 0; i < t->key_count && rc == SQLITE_OK; i++)
		rc = sqlite3_bind_value(st, from + (int)i, key[i]);
	return rc;
}

/* *end: the key of the last row of the next batch. *more: there are rows behind that row. */
static enum err
find_end(struct store_db *db, const struct store_sums *s, sqlite3_value **end, bool *more)
{
	const struct summed *t = &summed[s->table];
	char sql[SQL_MAX], keys[128], from[256] = "";
	sqlite3_stmt *st = NULL;

	list_keys(t, keys);
	if (s->behind[0])
		snprintf(from, sizeof(from), "WHERE (%s) > (%s) ", keys, marks(t));
	snprintf(sql, sizeof(sql), "SELECT %s FROM %s %sORDER BY %s LIMIT 1 OFFSET %d", keys,
	    t->table, from, keys, BATCH - 1);
	int rc = sqlite3_prepare_v2(db->sql, sql, -1, &st, NULL);
	if (rc == SQLITE_OK && s->behind[0])
		rc = bind_key(st, 1, t, s->behind);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	*more = rc == SQLITE_ROW;
	for (size_t i = 0; i < t->key_count && *more; i++) {
		end[i] = sqlite3_value_dup(sqlite3_column_value(st, (int)i));
		if (!end[i])
			rc = SQLITE_NOMEM;
	}
	enum err e = rc == SQLITE_ROW || rc == SQLITE_DONE ? ERR_OK : store_schema_error(db, rc);
	sqlite3_finalize(st);
	return e;
}

static enum err
fill_to(struct store_db *db, const struct store_sums *s, sqlite3_value *const *end, bool more)
{
	const struct summed *t = &summed[s->table];
	char sql[SQL_MAX], keys[128], from[256] = "", to[256] = "";
	sqlite3_stmt *st = NULL;

	list_keys(t, keys);
	if (s->behind[0])
		snprintf(from, sizeof(from), " AND (%s) > (%s)", keys, marks(t));
	if (more)
		snprintf(to, sizeof(to), " AND (%s) <= (%s)", keys, marks(t));
	snprintf(sql, sizeof(sql),
	    "UPDATE %s SET checksum = " FUNCTION "(%s) WHERE checksum IS NULL%s%s", t->table,
	    t->columns, from, to);
	int rc = sqlite3_prepare_v2(db->sql, sql, -1, &st, NULL);
	int next = 1;
	if (rc == SQLITE_OK && s->behind[0]) {
		rc = bind_key(st, next, t, s->behind);
		next += (int)t->key_count;
	}
	if (rc == SQLITE_OK && more)
		rc = bind_key(st, next, t, end);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	enum err e = rc == SQLITE_DONE ? ERR_OK : store_schema_error(db, rc);
	sqlite3_finalize(st);
	return e;
}

static void
name_of(const struct summed *t, char out[64])
{
	snprintf(out, 64, "summed.%s", t->table);
}

/* Fills one batch of rows, or goes on to the next table. */
static enum err
fill_some(struct store_db *db, struct store_sums *s)
{
	sqlite3_value *end[KEYS_MAX] = {NULL};
	uint64_t done = 0;
	bool more = false;
	char name[64];

	name_of(&summed[s->table], name);
	enum err e = s->behind[0] ? ERR_OK : store_meta_get(db, name, &done);
	if (e == ERR_NOTFOUND)
		e = ERR_OK;
	if (!e && !done)
		e = find_end(db, s, end, &more);
	if (!e && !done)
		e = fill_to(db, s, end, more);
	if (!e && !done && !more)
		e = store_meta_put(db, name, 1);
	forget_place(s);
	memcpy(s->behind, end, sizeof(end));
	if (!e && !more)
		s->table++;
	return e;
}

enum err
store_sums_work(struct store_db *db, void *arg, struct why *why)
{
	const uint64_t until = clock_ms() + FILL_MS;
	struct store_sums *s = arg;
	enum err e = ERR_OK;

	(void)why;
	while (!e && s->table < TABLES && clock_ms() < until)
		e = fill_some(db, s);
	/* What was undone is looked at again. */
	if (e) {
		forget_place(s);
		s->table = 0;
	}
	return e;
}

bool
store_sums_filled(const struct store_sums *s)
{
	return s->table == TABLES;
}

/* --- judging them */

struct judged {
	void (*fn)(void *ctx, const char *table, const char *row);
	void *ctx;
	const char *table;
};

/* "id 0a1b2c..." of the key's columns; bytes as digits, so that nothing of a damaged row is printed as it is. */
static int
see_row(void *arg, int count, char **values, char **names)
{
	const struct judged *j = arg;
	char row[160] = "";
	size_t at = 0;

	for (int i = 0; i < count && at < sizeof(row); i++)
		at += (size_t)snprintf(row + at, sizeof(row) - at, "%s%s %.32s", i ? " " : "",
		    names[i], values[i] ? values[i] : "?");
	j->fn(j->ctx, j->table, row);
	return 0;
}

static enum err
judge(struct store_db *db, const struct summed *t, struct judged *j)
{
	char sql[SQL_MAX], keys[256] = "";
	size_t at = 0;

	for (size_t i = 0; i < t->key_count; i++)
		at += (size_t)snprintf(keys + at, sizeof(keys) - at,
		    "%sCASE typeof(%s) WHEN 'integer' THEN %s ELSE lower(hex(%s)) END AS %s",
		    i ? ", " : "", t->keys[i], t->keys[i], t->keys[i], t->keys[i]);
	snprintf(sql, sizeof(sql), "SELECT %s FROM %s WHERE checksum <> " FUNCTION "(%s)", keys,
	    t->table, t->columns);
	j->table = t->table;
	int rc = sqlite3_exec(db->sql, sql, see_row, j, NULL);
	return rc == SQLITE_OK ? ERR_OK : store_schema_error(db, rc);
}

static enum err
count_missing(struct store_db *db, const struct summed *t, uint64_t *missing)
{
	char sql[128];
	sqlite3_stmt *st = NULL;

	snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s WHERE checksum IS NULL", t->table);
	int rc = sqlite3_prepare_v2(db->sql, sql, -1, &st, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	if (rc == SQLITE_ROW)
		*missing += (uint64_t)sqlite3_column_int64(st, 0);
	enum err e = rc == SQLITE_ROW ? ERR_OK : store_schema_error(db, rc);
	sqlite3_finalize(st);
	return e;
}

enum err
store_inspect_sums(struct store_db *db, void (*fn)(void *ctx, const char *table, const char *row),
    void *ctx, uint64_t *missing, struct why *why)
{
	struct judged j = {.fn = fn, .ctx = ctx};
	enum err e = ERR_OK;

	*missing = 0;
	for (size_t i = 0; i < TABLES && !e; i++) {
		e = judge(db, &summed[i], &j);
		e = e ? e : count_missing(db, &summed[i], missing);
	}
	return e ? err_set(why, e, "%s", db->last.text) : ERR_OK;
}
