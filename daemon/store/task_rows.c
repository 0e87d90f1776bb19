#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "row.h"
#include "store_inside.h"

_Static_assert(STORE_SPEEDS == 5, "the statement below says it too");

/* A damaged row of `speed` is passed over: the device's next delta measures its speed anew. */
#define COLUMNS "job, device, serial, steps, seconds, samples, up_bytes, up_seconds, at"

static const struct store_field fields[] = {
    {STORE_BLOB, MEMBER(store_speed, job)},
    {STORE_BLOB, MEMBER(store_speed, device)},
    {STORE_UNSIGNED, MEMBER(store_speed, serial)},
    {STORE_UNSIGNED, MEMBER(store_speed, steps)},
    {STORE_REAL, MEMBER(store_speed, seconds)},
    {STORE_REAL, MEMBER(store_speed, samples)},
    {STORE_UNSIGNED, MEMBER(store_speed, up_bytes)},
    {STORE_REAL, MEMBER(store_speed, up_seconds)},
    {STORE_REAL, MEMBER(store_speed, at)},
};
static const struct store_table table = STORE_TABLE(fields);

enum err
store_speed_add(struct store_db *db, const struct store_speed *row)
{
	/* All but the serial, which is the store's. */
	struct store_query q = store_query_begin(db,
	    "INSERT OR REPLACE INTO speed (slot, serial, job, device, steps, seconds, samples, "
	    "up_bytes, up_seconds, at) SELECT n % 5, n, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 FROM "
	    "(SELECT coalesce(max(serial) + 1, 0) AS n FROM speed WHERE job = ?1 AND device = ?2)");

	store_query_row(&q, &(struct store_table){2, fields}, row);
	store_query_row(&q, &(struct store_table){6, fields + 3}, row);
	return store_query_done(&q);
}

static enum err
each(struct store_query *q, enum err (*fn)(void *ctx, const struct store_speed *row), void *ctx)
{
	struct store_speed row;

	while (store_query_next(q, &table, &row))
		q->e = fn(ctx, &row);
	return store_query_end(q);
}

enum err
store_speed_after(struct store_db *db, const uint8_t job[16], const struct store_speed *last,
    uint64_t limit, enum err (*fn)(void *ctx, const struct store_speed *row), void *ctx)
{
	struct store_query q = store_query_begin(db,
	    "SELECT " COLUMNS " FROM speed WHERE job = ?1 AND device >= ?2 AND (device > ?2 OR "
	    "serial >= ?3) AND " STORE_SOUND(STORE_SUM_SPEED) " ORDER BY device, serial LIMIT ?4");

	store_query_blob(&q, job, 16);
	store_query_blob(&q, last ? last->device : (const uint8_t *)"", last ? 32 : 0);
	store_query_unsigned(&q, last ? last->serial + 1 : 0);
	store_query_unsigned(&q, limit);
	return each(&q, fn, ctx);
}

enum err
store_speed_each(struct store_db *db, const uint8_t job[16],
    enum err (*fn)(void *ctx, const struct store_speed *row), void *ctx)
{
	return store_speed_after(db, job, NULL, INT64_MAX, fn, ctx);
}

enum err
store_speed_of(struct store_db *db, const uint8_t device[32],
    enum err (*fn)(void *ctx, const struct store_speed *row), void *ctx)
{
	struct store_query q = store_query_begin(db,
	    "SELECT " COLUMNS " FROM speed WHERE device = ? AND " STORE_SOUND(
		STORE_SUM_SPEED) " ORDER BY job, serial");

	store_query_blob(&q, device, 32);
	return each(&q, fn, ctx);
}

struct reports_row {
	uint8_t device[32];
	uint64_t reports;
};
static const struct store_field reports_fields[] = {
    {STORE_BLOB, MEMBER(reports_row, device)}, {STORE_UNSIGNED, MEMBER(reports_row, reports)}};

enum err
store_speed_reports(struct store_db *db, const uint8_t job[16], uint64_t from, uint64_t to,
    enum err (*fn)(void *ctx, const uint8_t device[32], uint64_t reports), void *ctx)
{
	struct store_query q = store_query_begin(db,
	    "SELECT accept.device, count(*) FROM accept JOIN round ON round.job = accept.job "
	    "AND round.round = accept.folded AND round.state = 'committed' WHERE accept.job = ? "
	    "AND accept.folded BETWEEN ? AND ? GROUP BY accept.device ORDER BY accept.device");
	struct reports_row row;

	store_query_blob(&q, job, 16);
	store_query_unsigned(&q, from);
	store_query_unsigned(&q, to);
	while (store_query_next(&q, &(struct store_table){2, reports_fields}, &row))
		q.e = fn(ctx, row.device, row.reports);
	return store_query_end(&q);
}

static const struct store_field sized_fields[] = {
    {STORE_BLOB, MEMBER(store_sized, job)},
    {STORE_UNSIGNED, MEMBER(store_sized, round)},
    {STORE_BLOB, MEMBER(store_sized, device)},
    {STORE_UNSIGNED, MEMBER(store_sized, steps)},
};
static const struct store_table sized_table = STORE_TABLE(sized_fields);

enum err
store_sized_drop(struct store_db *db, const uint8_t job[16], uint64_t oldest)
{
	struct store_query q =
	    store_query_begin(db, "DELETE FROM sized WHERE job = ? AND round < ?");

	store_query_blob(&q, job, 16);
	store_query_unsigned(&q, oldest);
	return store_query_done(&q);
}

enum err
store_sized_put(struct store_db *db, const struct store_sized *row)
{
	struct store_query q = store_query_begin(
	    db, "INSERT OR REPLACE INTO sized (job, round, device, steps) VALUES (?,?,?,?)");

	store_query_row(&q, &sized_table, row);
	enum err e = store_query_done(&q);
	return e ? e : store_sized_drop(db, row->job, row->oldest);
}

enum err
store_sized_each(struct store_db *db, const uint8_t job[16],
    enum err (*fn)(void *ctx, const struct store_sized *row), void *ctx)
{
	struct store_query q = store_query_begin(db,
	    "SELECT " STORE_SUM_SIZED STORE_JUDGED(
		"sized", STORE_SUM_SIZED) " FROM sized WHERE job = ? ORDER BY device, round");
	struct store_sized row = {.oldest = 0};

	store_query_blob(&q, job, 16);
	while (store_query_next(&q, &sized_table, &row))
		q.e = fn(ctx, &row);
	return store_query_end(&q);
}

static const struct store_field out_fields[] = {
    {STORE_BLOB, MEMBER(store_out, job)},
    {STORE_BLOB, MEMBER(store_out, device)},
    {STORE_UNSIGNED, MEMBER(store_out, round)},
    {STORE_REAL, MEMBER(store_out, at)},
};
static const struct store_table out_table = STORE_TABLE(out_fields);

enum err
store_out_put(struct store_db *db, const struct store_out *row)
{
	struct store_query q = store_query_begin(
	    db, "INSERT OR REPLACE INTO task_out (job, device, round, at) VALUES (?,?,?,?)");

	store_query_row(&q, &out_table, row);
	return store_query_done(&q);
}

enum err
store_out_drop(struct store_db *db, const struct store_out *row)
{
	struct store_query q = store_query_begin(
	    db, "DELETE FROM task_out WHERE job = ? AND device = ? AND round = ?");

	store_query_row(&q, &(struct store_table){3, out_fields}, row);
	return store_query_done(&q);
}

enum err
store_out_clear(struct store_db *db, const uint8_t job[16])
{
	struct store_query q = store_query_begin(db, "DELETE FROM task_out WHERE job = ?");

	store_query_blob(&q, job, 16);
	return store_query_done(&q);
}

enum err
store_out_unanswered(struct store_db *db, const struct store_out *after,
    enum err (*fn)(void *ctx, const struct store_out *row), void *ctx)
{
	static const struct store_field where[] = {
	    {STORE_BLOB, MEMBER(store_out, job)}, {STORE_REAL, MEMBER(store_out, at)}};
	struct store_query q = store_query_begin(db,
	    "SELECT " STORE_SUM_OUT STORE_JUDGED("task_out",
		STORE_SUM_OUT) " FROM task_out AS t WHERE job = ? AND at > ? AND NOT EXISTS "
			       "(SELECT 1 FROM accept WHERE accept.job = t.job AND accept.round "
			       "= t.round AND accept.device = t.device) ORDER BY device");
	struct store_out row;

	store_query_row(&q, &(struct store_table){2, where}, after);
	while (store_query_next(&q, &out_table, &row))
		q.e = fn(ctx, &row);
	return store_query_end(&q);
}

static const struct store_field evaluation_fields[] = {
    {STORE_BLOB, MEMBER(store_accept, job)},
    {STORE_UNSIGNED, MEMBER(store_accept, round)},
    {STORE_BLOB, MEMBER(store_accept, device)},
    {STORE_BLOB, MEMBER(store_accept, task)},
    {STORE_BLOB, MEMBER(store_accept, manifest)},
    {STORE_BLOB, MEMBER(store_accept, receipt)},
    {STORE_LONG_TEXT, offsetof(struct store_accept, report), 0},
    {STORE_REAL, MEMBER(store_accept, accepted_at)},
};
static const struct store_table evaluation_table = STORE_TABLE(evaluation_fields);

enum err
store_evaluation_put(struct store_db *db, const struct store_accept *row)
{
	struct store_query q = store_query_begin(db,
	    "INSERT OR REPLACE INTO evaluation (" STORE_SUM_EVALUATION
	    ") VALUES (?,?,?,?,?,?,?,?)");

	store_query_row(&q, &evaluation_table, row);
	return store_query_done(&q);
}

enum err
store_evaluation_get(struct store_db *db, const uint8_t job[16], uint64_t round,
    const uint8_t *device, struct store_accept *out)
{
	struct store_query q = store_query_begin(db,
	    "SELECT " STORE_SUM_EVALUATION STORE_JUDGED(
		"evaluation", STORE_SUM_EVALUATION) " FROM evaluation WHERE job = ? AND round = ?");

	*out = (struct store_accept){.report = NULL};
	store_query_blob(&q, job, 16);
	store_query_unsigned(&q, round);
	enum err e = store_query_one_owned(&q, &evaluation_table, out, &out->report, NULL);
	if (e || !device || memcmp(out->device, device, sizeof(out->device)) == 0)
		return e;
	free(out->report);
	out->report = NULL;
	return ERR_NOTFOUND;
}

enum err
store_evaluation_each(struct store_db *db, const uint8_t job[16],
    enum err (*fn)(void *ctx, const struct store_accept *row), void *ctx)
{
	struct store_query q = store_query_begin(db,
	    "SELECT " STORE_SUM_EVALUATION STORE_JUDGED("evaluation",
		STORE_SUM_EVALUATION) " FROM evaluation WHERE job = ? ORDER BY round");
	struct store_accept row = {.report = NULL};

	store_query_blob(&q, job, 16);
	while (store_query_next(&q, &evaluation_table, &row))
		q.e = fn(ctx, &row);
	return store_query_end(&q);
}
