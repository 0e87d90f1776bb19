#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "store_inside.h"

/* Above every limit on what comes in, so that only a damaged file reaches it. */
#define DOCUMENT_MAX (64u << 20)

/* The statement's place, made when it is first asked for; NULL without memory. */
static struct store_statement *
find(struct store_db *db, const char *sql)
{
	size_t n = db->statement_count,
	       at = bytes_place(db->statements, n, sizeof(*db->statements), &sql, sizeof(sql));

	if (at < n && db->statements[at].sql == sql)
		return &db->statements[at];
	struct store_statement *all =
	    bytes_grow(db->statements, n, &db->statement_room, sizeof(*all));
	if (!all)
		return NULL;
	memmove(all + at + 1, all + at, (n - at) * sizeof(*all));
	all[at] = (struct store_statement){.sql = sql};
	db->statements = all;
	db->statement_count++;
	return &all[at];
}

struct store_query
store_query_begin(struct store_db *db, const char *sql)
{
	struct store_statement *s = find(db, sql);
	struct store_query q = {.db = db, .st = s ? s->st : NULL};

	if (!s) {
		q.e = err_set(&db->last, ERR_NOMEM, "no memory for a statement");
	} else if (!s->st) {
		int rc =
		    sqlite3_prepare_v3(db->sql, sql, -1, SQLITE_PREPARE_PERSISTENT, &s->st, NULL);
		q.st = s->st;
		q.e = rc == SQLITE_OK ? ERR_OK : store_schema_error(db, rc);
	} else if (sqlite3_stmt_busy(s->st)) {
		/* Inside its own `each`: restarting it would cut that one short. */
		q.st = NULL;
		q.e = err_set(&db->last, ERR_STATE, "a query inside the same query");
	}
	return q;
}

enum err
store_query_end(struct store_query *q)
{
	if (q->st) {
		sqlite3_reset(q->st);
		sqlite3_clear_bindings(q->st);
	}
	return q->e;
}

static void
check(struct store_query *q, int rc)
{
	if (!q->e && rc != SQLITE_OK)
		q->e = store_schema_error(q->db, rc);
}

void
store_query_blob(struct store_query *q, const void *data, size_t len)
{
	if (!q->e)
		check(q, sqlite3_bind_blob64(q->st, ++q->bound, data, len, SQLITE_STATIC));
}

void
store_query_text(struct store_query *q, const char *s, size_t len, size_t max)
{
	if (!q->e && len > max)
		q->e = err_set(&q->db->last, ERR_LIMIT, "a text is longer than %zu bytes", max);
	if (!q->e)
		check(
		    q, sqlite3_bind_text64(q->st, ++q->bound, s, len, SQLITE_STATIC, SQLITE_UTF8));
}

void
store_query_unsigned(struct store_query *q, uint64_t v)
{
	if (!q->e && v > INT64_MAX)
		q->e = err_set(&q->db->last, ERR_LIMIT, "a number is above 2^63 - 1");
	if (!q->e)
		check(q, sqlite3_bind_int64(q->st, ++q->bound, (sqlite3_int64)v));
}

static void
bind_long_text(struct store_query *q, const char *row, const struct store_field *f)
{
	const char *s = *(char *const *)(const void *)(row + f->offset);

	if (!s && !q->e)
		check(q, sqlite3_bind_null(q->st, ++q->bound));
	else if (s)
		store_query_text(q, s,
		    f->size ? *(const size_t *)(const void *)(row + f->size) : strlen(s),
		    DOCUMENT_MAX);
}

static void
bind_long_blob(struct store_query *q, const char *row, const struct store_field *f)
{
	const uint8_t *data = *(uint8_t *const *)(const void *)(row + f->offset);
	size_t len = *(const size_t *)(const void *)(row + f->size);

	if (!q->e && len > DOCUMENT_MAX)
		q->e = err_set(&q->db->last, ERR_LIMIT, "a blob is longer than %u", DOCUMENT_MAX);
	store_query_blob(q, data, len);
}

void
store_query_word(struct store_query *q, const char *word)
{
	if (!q->e && !word[0])
		q->e = err_set(&q->db->last, ERR_INVALID, "a state without a name");
	store_query_text(q, word, strlen(word), DOCUMENT_MAX);
}

/* The name of a claim; CLAIM_UNKNOWN, of a row in which nobody has set the claim, is stored as CLAIM_NONE. */
static const char *
claim_word(enum device_claim c)
{
	return states_claim_name(c == CLAIM_UNKNOWN ? CLAIM_NONE : c);
}

void
store_query_row(struct store_query *q, const struct store_table *t, const void *from)
{
	for (const struct store_field *f = t->fields; f < t->fields + t->count && !q->e; f++) {
		const char *row = from;
		const void *p = row + f->offset;
		switch (f->type) {
		case STORE_BLOB:
			store_query_blob(q, p, f->size);
			break;
		case STORE_TEXT:
			store_query_text(q, p, strnlen(p, f->size), f->size - 1);
			break;
		case STORE_LONG_TEXT:
			bind_long_text(q, row, f);
			break;
		case STORE_LONG_BLOB:
			bind_long_blob(q, row, f);
			break;
		case STORE_UNSIGNED:
			store_query_unsigned(q, *(const uint64_t *)p);
			break;
		case STORE_REAL:
			/* SQLite turns NaN into NULL by itself. */
			check(q, sqlite3_bind_double(q->st, ++q->bound, *(const double *)p));
			break;
		case STORE_ANY64:
			check(q, sqlite3_bind_int64(q->st, ++q->bound, *(const sqlite3_int64 *)p));
			break;
		case STORE_BOOL:
			check(q, sqlite3_bind_int(q->st, ++q->bound, *(const bool *)p));
			break;
		case STORE_DEVICE_STATE:
			store_query_word(q, states_device_name(*(const enum device_state *)p));
			break;
		case STORE_DEVICE_CLAIM:
			store_query_word(q, claim_word(*(const enum device_claim *)p));
			break;
		case STORE_JOB_STATE:
			store_query_word(q, states_job_name(*(const enum job_state *)p));
			break;
		case STORE_ROUND_OUTCOME:
			store_query_word(q, states_round_name(*(const enum round_outcome *)p));
			break;
		}
	}
}

/* True if there is a row. */
static bool
step(struct store_query *q)
{
	if (q->e)
		return false;
	int rc = sqlite3_step(q->st);
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		q->e = store_schema_error(q->db, rc);
	return rc == SQLITE_ROW;
}

static bool
read_blob(sqlite3_stmt *st, int i, void *out, size_t size)
{
	const void *p = sqlite3_column_blob(st, i);

	if (!p || (size_t)sqlite3_column_bytes(st, i) != size)
		return false;
	memcpy(out, p, size);
	return true;
}

static bool
read_text(sqlite3_stmt *st, int i, char *out, size_t size)
{
	const unsigned char *p = sqlite3_column_text(st, i);
	size_t len = (size_t)sqlite3_column_bytes(st, i);

	if (!p || len >= size || strlen((const char *)p) != len)
		return false;
	memcpy(out, p, len + 1);
	return true;
}

/* Points the row to the text, which belongs to SQLite and is valid until the next step. */
static bool
read_long_text(sqlite3_stmt *st, int i, char *row, const struct store_field *f)
{
	char *p = (char *)(uintptr_t)sqlite3_column_text(st, i);
	size_t len = (size_t)sqlite3_column_bytes(st, i);

	memcpy(row + f->offset, &p, sizeof(p));
	if (f->size)
		memcpy(row + f->size, &len, sizeof(len));
	return len <= DOCUMENT_MAX && (p || !f->size) && (f->size || !p || strlen(p) == len);
}

/* Points the row to the bytes, which belong to SQLite and are valid until the next step. */
static bool
read_long_blob(sqlite3_stmt *st, int i, char *row, const struct store_field *f)
{
	const void *p = sqlite3_column_blob(st, i);
	size_t len = (size_t)sqlite3_column_bytes(st, i);

	memcpy(row + f->offset, &p, sizeof(p));
	memcpy(row + f->size, &len, sizeof(len));
	return p && len <= DOCUMENT_MAX;
}

static const char *
word(sqlite3_stmt *st, int i)
{
	return (const char *)sqlite3_column_text(st, i);
}

static bool
read_field(sqlite3_stmt *st, int i, char *row, const struct store_field *f)
{
	bool null = sqlite3_column_type(st, i) == SQLITE_NULL;
	sqlite3_int64 n = sqlite3_column_int64(st, i);
	void *p = row + f->offset;

	switch (f->type) {
	case STORE_BLOB:
		return read_blob(st, i, p, f->size);
	case STORE_TEXT:
		return read_text(st, i, p, f->size);
	case STORE_LONG_TEXT:
		return read_long_text(st, i, row, f);
	case STORE_LONG_BLOB:
		return read_long_blob(st, i, row, f);
	case STORE_UNSIGNED:
		*(uint64_t *)p = (uint64_t)n;
		return !null && n >= 0;
	case STORE_ANY64:
		*(sqlite3_int64 *)p = n;
		return !null;
	case STORE_REAL:
		*(double *)p = null ? NAN : sqlite3_column_double(st, i);
		return true;
	case STORE_BOOL:
		*(bool *)p = n != 0;
		return !null && (n == 0 || n == 1);
	case STORE_DEVICE_STATE:
		return (*(enum device_state *)p = states_device_find(word(st, i)));
	case STORE_DEVICE_CLAIM:
		return (*(enum device_claim *)p = states_claim_find(word(st, i)));
	case STORE_JOB_STATE:
		return (*(enum job_state *)p = states_job_find(word(st, i)));
	case STORE_ROUND_OUTCOME:
		return (*(enum round_outcome *)p = states_round_find(word(st, i)));
	}
	return false;
}

/* ERR_CORRUPT if the column that STORE_JUDGED adds says that the row does not match its checksum. */
static enum err
judge_row(struct store_query *q, int column)
{
	bool judged = sqlite3_column_count(q->st) > column;
	int sound = judged ? sqlite3_column_int(q->st, column) : 2;

	q->db->proved = sound == 1;
	if (sound || q->db->unjudged)
		return ERR_OK;
	return err_set(&q->db->last, ERR_CORRUPT,
	    "a %s does not match its checksum: see \"rivuletd check\"",
	    sqlite3_column_name(q->st, column));
}

static enum err
read_row(struct store_query *q, const struct store_table *t, void *row)
{
	for (size_t i = 0; i < t->count; i++) {
		if (!read_field(q->st, (int)i, row, &t->fields[i]))
			return err_set(&q->db->last, ERR_CORRUPT,
			    "column %s does not hold what it should",
			    sqlite3_column_name(q->st, (int)i));
	}
	return judge_row(q, (int)t->count);
}

bool
store_query_next(struct store_query *q, const struct store_table *t, void *row)
{
	if (!step(q))
		return false;
	q->e = read_row(q, t, row);
	return !q->e;
}

/* Reads the only row, and leaves the query open, since a long text still lies in SQLite's memory. */
static void
only_row(struct store_query *q, const struct store_table *t, void *row)
{
	if (step(q))
		q->e = read_row(q, t, row);
	else if (!q->e)
		q->e = ERR_NOTFOUND;
}

enum err
store_query_one(struct store_query *q, const struct store_table *t, void *row)
{
	only_row(q, t, row);
	return store_query_end(q);
}

enum err
store_query_one_owned(
    struct store_query *q, const struct store_table *t, void *row, char **text, const size_t *len)
{
	char *copy = NULL;

	only_row(q, t, row);
	if (!q->e && *text) {
		size_t n = len ? *len : strlen(*text);
		copy = malloc(n + 1);
		if (copy)
			memcpy(copy, *text, n + 1);
		else
			q->e = err_set(&q->db->last, ERR_NOMEM, "no memory for a row");
	}
	*text = copy;
	return store_query_end(q);
}

enum err
store_query_done(struct store_query *q)
{
	step(q);
	return store_query_end(q);
}
