#include "audit_rows.h"

#include <string.h>

#include "store_inside.h"

static const struct store_field audit_fields[] = {
    {STORE_UNSIGNED, MEMBER(store_audit, seq)},
    {STORE_BLOB, MEMBER(store_audit, link)},
    {STORE_LONG_TEXT, offsetof(struct store_audit, body), offsetof(struct store_audit, body_len)},
    {STORE_BLOB, MEMBER(store_audit, job)},
    {STORE_UNSIGNED, MEMBER(store_audit, round)},
};
static const struct store_table audit_table = STORE_TABLE(audit_fields);

static const struct store_field link_fields[] = {{STORE_BLOB, 0, 256}};
static const struct store_table link_table = STORE_TABLE(link_fields);

static const struct store_field detail_fields[] = {
    {STORE_UNSIGNED, MEMBER(store_detail, seq)},
    {STORE_UNSIGNED, MEMBER(store_detail, place)},
    {STORE_BLOB, MEMBER(store_detail, device)},
    {STORE_BLOB, MEMBER(store_detail, salt)},
    {STORE_LONG_BLOB, offsetof(struct store_detail, data), offsetof(struct store_detail, len)},
};
static const struct store_table detail_table = STORE_TABLE(detail_fields);

/* Zeros stand for NULL in the table, so that its indexes hold only rows that are about somebody. */
#define ENTRY "seq, link, body, coalesce(job, zeroblob(16)), coalesce(round, 0)"
#define DETAIL "seq, place, coalesce(device, zeroblob(32)), salt, data"

_Static_assert(STORE_SIGHT_MAX == 8192, "a statement below says it too");

enum err
store_audit_insert(struct store_db *db, const struct store_audit *a)
{
	struct store_query q = store_query_begin(db,
	    "INSERT INTO audit (seq, link, body, job, round) VALUES "
	    "(?1, ?2, ?3, nullif(?4, zeroblob(16)), nullif(?5, 0))");

	store_query_row(&q, &audit_table, a);
	return store_query_done(&q);
}

enum err
store_audit_last(struct store_db *db, uint8_t link[256])
{
	struct store_query q =
	    store_query_begin(db, "SELECT link FROM audit ORDER BY seq DESC LIMIT 1");

	return store_query_one(&q, &link_table, link);
}

enum err
store_audit_each(struct store_db *db, uint64_t from, uint64_t limit,
    enum err (*fn)(void *ctx, const struct store_audit *a), void *ctx)
{
	struct store_query q = store_query_begin(
	    db, "SELECT " ENTRY " FROM audit WHERE seq >= ? ORDER BY seq LIMIT ?");
	struct store_audit a;

	store_query_unsigned(&q, from);
	store_query_unsigned(&q, limit < INT64_MAX ? limit : INT64_MAX);
	while (store_query_next(&q, &audit_table, &a))
		q.e = fn(ctx, &a);
	return store_query_end(&q);
}

enum err
store_audit_round(
    struct store_db *db, const uint8_t job[16], uint64_t round, struct store_audit *out)
{
	struct store_query q = store_query_begin(db,
	    "SELECT " ENTRY " FROM audit WHERE job = ? AND round = ? "
	    "AND body LIKE '{\"event\":\"round.%' ORDER BY seq DESC LIMIT 1");

	store_query_blob(&q, job, 16);
	store_query_unsigned(&q, round);
	return store_query_one_owned(&q, &audit_table, out, &out->body, &out->body_len);
}

enum err
store_audit_detail_insert(struct store_db *db, const struct store_detail *d)
{
	struct store_query q = store_query_begin(db,
	    "INSERT INTO audit_detail (seq, place, device, salt, data) VALUES "
	    "(?1, ?2, nullif(?3, zeroblob(32)), ?4, ?5)");

	store_query_row(&q, &detail_table, d);
	return store_query_done(&q);
}

enum err
store_audit_detail_each(struct store_db *db, uint64_t seq,
    enum err (*fn)(void *ctx, const struct store_detail *d), void *ctx)
{
	struct store_query q = store_query_begin(
	    db, "SELECT " DETAIL " FROM audit_detail WHERE seq = ? ORDER BY place");
	struct store_detail d;

	store_query_unsigned(&q, seq);
	while (store_query_next(&q, &detail_table, &d))
		q.e = fn(ctx, &d);
	return store_query_end(&q);
}

enum err
store_audit_sight(struct store_db *db, uint64_t seq, const uint8_t device[32],
    enum err (*fn)(void *ctx, const struct store_detail *d), void *ctx)
{
	/* Of an entry with a detail for each of many devices two rows are touched, and no long one is read. */
	struct store_query q = store_query_begin(db,
	    "SELECT seq, place, coalesce(device, zeroblob(32)), salt, "
	    "CASE WHEN length(data) BETWEEN 1 AND 8192 THEN data ELSE zeroblob(1) END "
	    "FROM audit_detail WHERE seq = ?1 AND place = 0 UNION ALL "
	    "SELECT seq, place, device, salt, zeroblob(1) FROM audit_detail "
	    "INDEXED BY audit_detail_device WHERE device = ?2 AND seq = ?1 AND place > 0");
	struct store_detail d;

	store_query_unsigned(&q, seq);
	store_query_blob(&q, device, 32);
	while (store_query_next(&q, &detail_table, &d))
		q.e = fn(ctx, &d);
	return store_query_end(&q);
}

/* --- erasing a device */

static const struct store_field number_fields[] = {{STORE_UNSIGNED, 0, 0}};
static const struct store_table number_table = STORE_TABLE(number_fields);

static const struct store_field task_fields[] = {{STORE_BLOB, 0, 16}};
static const struct store_table task_table = STORE_TABLE(task_fields);

static enum err
is_busy(struct store_db *db, const uint8_t device[32])
{
	struct store_query q = store_query_begin(db,
	    "SELECT (SELECT count(*) FROM accept JOIN job ON job.id = accept.job LEFT JOIN round "
	    "ON round.job = accept.job AND round.round = accept.folded WHERE accept.device = ?1 "
	    "AND coalesce(round.state, 'open') IN ('open', 'evaluating') AND job.state IN "
	    "('running', 'paused')) + (SELECT count(*) FROM evaluation AS e JOIN job ON job.id = "
	    "e.job JOIN round ON round.job = e.job AND round.round = e.round WHERE e.device = ?1 "
	    "AND round.state = 'open' AND job.state IN ('running', 'paused'))");
	uint64_t open;

	store_query_blob(&q, device, 32);
	enum err e = store_query_one(&q, &number_table, &open);
	return !e && open > 0 ? ERR_STATE : e;
}

static enum err
each_task(struct store_db *db, const uint8_t device[32],
    enum err (*fn)(void *ctx, const uint8_t task[16]), void *ctx)
{
	struct store_query q = store_query_begin(db, "SELECT task FROM accept WHERE device = ?");
	uint8_t task[16];

	store_query_blob(&q, device, 32);
	while (store_query_next(&q, &task_table, task))
		q.e = fn(ctx, task);
	return store_query_end(&q);
}

static enum err
delete_rows(struct store_db *db, const char *sql, const uint8_t device[32], uint64_t *count)
{
	struct store_query q = store_query_begin(db, sql);

	store_query_blob(&q, device, 32);
	enum err e = store_query_done(&q);
	*count = e ? 0 : (uint64_t)sqlite3_changes(db->sql);
	return e;
}

enum err
store_audit_erase(struct store_db *db, const uint8_t device[32],
    enum err (*fn)(void *ctx, const uint8_t task[16]), void *ctx, struct store_erased *out)
{
	static const char *const others[] = {"DELETE FROM seen WHERE device = ?",
	    "DELETE FROM speed WHERE device = ?", "DELETE FROM sized WHERE device = ?",
	    "DELETE FROM task_out WHERE device = ?", "DELETE FROM evaluation WHERE device = ?",
	    "DELETE FROM device_claim WHERE device = ?", "DELETE FROM joined WHERE device = ?"};
	enum err e = is_busy(db, device);
	uint64_t count;

	*out = (struct store_erased){.details = 0};
	if (!e)
		e = each_task(db, device, fn, ctx);
	if (!e)
		e = delete_rows(
		    db, "DELETE FROM audit_detail WHERE device = ?", device, &out->details);
	if (!e)
		e = delete_rows(db, "DELETE FROM accept WHERE device = ?", device, &out->reports);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others) && !e; i++)
		e = delete_rows(db, others[i], device, &count);
	return e;
}
