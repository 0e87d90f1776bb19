#include "past_rows.h"

#include "store_inside.h"

#define AT(member) offsetof(struct store_past, member)
#define ARRAY(member) AT(member), sizeof(((struct store_past *)0)->member)

static const struct store_field past_fields[] = {
    {STORE_BLOB, ARRAY(id)},
    {STORE_BLOB, ARRAY(owner)},
    {STORE_TEXT, ARRAY(name)},
    {STORE_JOB_STATE, AT(state), 0},
    {STORE_TEXT, ARRAY(reason)},
    {STORE_ANY64, AT(priority), 0},
    {STORE_REAL, AT(created_at), 0},
    {STORE_REAL, AT(ended_at), 0},
    {STORE_UNSIGNED, AT(round), 0},
    {STORE_UNSIGNED, AT(rounds_committed), 0},
    {STORE_BLOB, ARRAY(base)},
    {STORE_BLOB, ARRAY(model)},
    {STORE_UNSIGNED, AT(model_bytes), 0},
    {STORE_UNSIGNED, AT(parameters), 0},
    {STORE_BOOL, AT(metric.known), 0},
    {STORE_UNSIGNED, AT(metric.examples), 0},
    {STORE_REAL, AT(metric.loss), 0},
    {STORE_REAL, AT(metric.accuracy), 0},
    {STORE_UNSIGNED, AT(metric_round), 0},
    {STORE_BOOL, AT(is_guarded), 0},
    {STORE_BOOL, AT(has_best), 0},
    {STORE_UNSIGNED, AT(bad), 0},
    {STORE_UNSIGNED, AT(rollbacks), 0},
    {STORE_UNSIGNED, AT(base_round), 0},
    {STORE_UNSIGNED, AT(best_round), 0},
    {STORE_BLOB, ARRAY(best_model)},
    {STORE_REAL, AT(best_value), 0},
    {STORE_BOOL, AT(only_evaluates), 0},
    {STORE_TEXT, ARRAY(monitor)},
    {STORE_BOOL, AT(monitor_rises), 0},
    {STORE_UNSIGNED, AT(keep_last), 0},
    {STORE_UNSIGNED, AT(keep_every), 0},
};
static const struct store_table past_table = {
    sizeof(past_fields) / sizeof(past_fields[0]), past_fields};

static const struct store_field brief_fields[] = {
    {STORE_BLOB, offsetof(struct store_job_brief, id), 16},
    {STORE_JOB_STATE, offsetof(struct store_job_brief, state), 0},
    {STORE_BOOL, offsetof(struct store_job_brief, past), 0},
};
static const struct store_table brief_table = {3, brief_fields};

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
