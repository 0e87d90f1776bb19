#include "past_rows.h"

#include "store_inside.h"

static const struct store_field past_fields[] = {
    {STORE_BLOB, MEMBER(store_past, id)},
    {STORE_BLOB, MEMBER(store_past, owner)},
    {STORE_TEXT, MEMBER(store_past, name)},
    {STORE_JOB_STATE, MEMBER(store_past, state)},
    {STORE_TEXT, MEMBER(store_past, reason)},
    {STORE_ANY64, MEMBER(store_past, priority)},
    {STORE_REAL, MEMBER(store_past, created_at)},
    {STORE_REAL, MEMBER(store_past, ended_at)},
    {STORE_UNSIGNED, MEMBER(store_past, round)},
    {STORE_UNSIGNED, MEMBER(store_past, rounds_committed)},
    {STORE_BLOB, MEMBER(store_past, base)},
    {STORE_BLOB, MEMBER(store_past, model)},
    {STORE_UNSIGNED, MEMBER(store_past, model_bytes)},
    {STORE_UNSIGNED, MEMBER(store_past, parameters)},
    {STORE_BOOL, MEMBER(store_past, metric.known)},
    {STORE_UNSIGNED, MEMBER(store_past, metric.examples)},
    {STORE_REAL, MEMBER(store_past, metric.loss)},
    {STORE_REAL, MEMBER(store_past, metric.accuracy)},
    {STORE_UNSIGNED, MEMBER(store_past, metric_round)},
    {STORE_BOOL, MEMBER(store_past, is_guarded)},
    {STORE_BOOL, MEMBER(store_past, has_best)},
    {STORE_UNSIGNED, MEMBER(store_past, bad)},
    {STORE_UNSIGNED, MEMBER(store_past, rollbacks)},
    {STORE_UNSIGNED, MEMBER(store_past, base_round)},
    {STORE_UNSIGNED, MEMBER(store_past, best_round)},
    {STORE_BLOB, MEMBER(store_past, best_model)},
    {STORE_REAL, MEMBER(store_past, best_value)},
    {STORE_BOOL, MEMBER(store_past, only_evaluates)},
    {STORE_TEXT, MEMBER(store_past, monitor)},
    {STORE_BOOL, MEMBER(store_past, monitor_rises)},
    {STORE_UNSIGNED, MEMBER(store_past, keep_last)},
    {STORE_UNSIGNED, MEMBER(store_past, keep_every)},
};
static const struct store_table past_table = STORE_TABLE(past_fields);

static const struct store_field brief_fields[] = {
    {STORE_BLOB, MEMBER(store_job_brief, id)},
    {STORE_JOB_STATE, MEMBER(store_job_brief, state)},
    {STORE_BOOL, MEMBER(store_job_brief, past)},
};
static const struct store_table brief_table = STORE_TABLE(brief_fields);

#define PAST STORE_SUM_PAST

enum err
store_past_dated(struct store_db *db, double now)
{
	static const char *const texts[] = {
	    "UPDATE past_job SET ended_at = ? WHERE ended_at IS NULL",
	    "UPDATE job INDEXED BY job_undated SET ended_at = ? WHERE ended_at IS NULL AND state "
	    "IN ('done', 'stopped')",
	};
	static const struct store_field field = {STORE_REAL, 0, 0};
	enum err e = ERR_OK;

	for (int i = 0; i < 2 && !e; i++) {
		struct store_query q = store_query_begin(db, texts[i]);
		store_query_row(&q, &(struct store_table){1, &field}, &now);
		e = store_query_done(&q);
	}
	return e;
}

enum err
store_past_put(struct store_db *db, const struct store_past *p)
{
	struct store_query q = store_query_begin(db,
	    "INSERT OR REPLACE INTO past_job (" PAST ") "
	    "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");

	store_query_row(&q, &past_table, p);
	return store_query_done(&q);
}

enum err
store_past_get(struct store_db *db, const uint8_t id[16], struct store_past *out)
{
	struct store_query q = store_query_begin(
	    db, "SELECT " PAST STORE_JUDGED("past_job", PAST) " FROM past_job WHERE id = ?");

	store_query_blob(&q, id, 16);
	return store_query_one(&q, &past_table, out);
}

enum err
store_job_brief_each(
    struct store_db *db, enum err (*fn)(void *ctx, const struct store_job_brief *j), void *ctx)
{
	/* The index has it all: a row's state lies behind its document. */
	struct store_query q = store_query_begin(db,
	    "SELECT id, state, EXISTS (SELECT 1 FROM past_job WHERE past_job.id = job.id) "
	    "FROM job INDEXED BY job_brief ORDER BY created_at, rowid");
	struct store_job_brief j;

	while (store_query_next(&q, &brief_table, &j))
		q.e = fn(ctx, &j);
	return store_query_end(&q);
}
