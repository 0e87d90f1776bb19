#include "past_rows.h"

#include "store_inside.h"

static struct store_query
begin(struct store_db *db, const char *sql, const uint8_t job[16])
{
	struct store_query q = store_query_begin(db, sql);

	store_query_blob(&q, job, 16);
	return q;
}

static struct store_query
begin_rounds(
    struct store_db *db, const char *sql, const uint8_t job[16], uint64_t from, uint64_t to)
{
	struct store_query q = begin(db, sql, job);

	store_query_unsigned(&q, from);
	store_query_unsigned(&q, to);
	return q;
}

struct task_row {
	uint8_t task[16];
	uint64_t bytes;
};
static const struct store_field task_fields[] = {
    {STORE_BLOB, MEMBER(task_row, task)},
    {STORE_UNSIGNED, MEMBER(task_row, bytes)},
};
static const struct store_table task_table = STORE_TABLE(task_fields);

enum err
store_delete_tasks(struct store_db *db, const uint8_t job[16], uint64_t from, uint64_t to,
    enum err (*fn)(void *ctx, const uint8_t task[16], uint64_t bytes), void *ctx)
{
	struct store_query q = begin_rounds(db,
	    "SELECT task, body_bytes FROM accept WHERE job = ? AND round BETWEEN ? AND ?", job,
	    from, to);
	struct task_row row;

	while (store_query_next(&q, &task_table, &row))
		q.e = fn(ctx, row.task, row.bytes);
	return store_query_end(&q);
}

enum err
store_delete_reports(struct store_db *db, const uint8_t job[16], uint64_t from, uint64_t to)
{
	static const char *const all[] = {
	    "DELETE FROM accept WHERE job = ? AND round BETWEEN ? AND ?",
	    ("DELETE FROM audit_detail WHERE seq IN "
	     "(SELECT seq FROM audit WHERE job = ? AND round BETWEEN ? AND ?)"),
	    "DELETE FROM round_metric WHERE job = ? AND round BETWEEN ? AND ?",
	    "DELETE FROM round_figures WHERE job = ? AND round BETWEEN ? AND ?",
	    "DELETE FROM round_override WHERE job = ? AND round BETWEEN ? AND ?",
	    "DELETE FROM evaluation WHERE job = ? AND round BETWEEN ? AND ?"};
	enum err e = ERR_OK;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) && !e; i++) {
		struct store_query q = begin_rounds(db, all[i], job, from, to);
		e = store_query_done(&q);
	}
	return e;
}

static enum err
run(struct store_db *db, const char *sql, const uint8_t job[16])
{
	struct store_query q = begin(db, sql, job);

	return store_query_done(&q);
}

enum err
store_delete_job(struct store_db *db, const uint8_t job[16], double now)
{
	/* What refers to the job before the job. */
	static const char *const all[] = {
	    /* Its document is the last detail of the entry about its submission. */
	    ("DELETE FROM audit_detail WHERE (seq, place) IN "
	     "(SELECT seq, max(place) FROM audit JOIN audit_detail USING (seq) WHERE job = ? "
	     "AND body LIKE '{\"event\":\"job.submitted\"%' GROUP BY seq)"),
	    "DELETE FROM best_model WHERE job = ?", "DELETE FROM speed WHERE job = ?",
	    "DELETE FROM sized WHERE job = ?", "DELETE FROM task_out WHERE job = ?",
	    "DELETE FROM job_override WHERE job = ?", "DELETE FROM job_stamp WHERE job = ?",
	    "DELETE FROM round WHERE job = ?", "DELETE FROM past_job WHERE id = ?",
	    "DELETE FROM job WHERE id = ?"};
	const struct store_field field = {STORE_REAL, 0, 0};
	struct store_query q = begin(db,
	    "INSERT INTO deleted_job (id, at, owner) SELECT id, ?2, owner FROM job WHERE id = ?1",
	    job);

	store_query_row(&q, &(struct store_table){1, &field}, &now);
	enum err e = store_query_done(&q);
	if (!e && sqlite3_changes(db->sql) == 0)
		return ERR_NOTFOUND;
	if (!e)
		e = store_delete_reports(db, job, 0, INT64_MAX);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) && !e; i++)
		e = run(db, all[i], job);
	return e;
}

enum err
store_delete_known(struct store_db *db, const uint8_t job[16])
{
	static const struct store_field field = {STORE_BLOB, 0, 16};
	struct store_query q = begin(db, "SELECT id FROM deleted_job WHERE id = ?", job);
	uint8_t id[16];

	return store_query_one(&q, &(struct store_table){1, &field}, id);
}

enum err
store_delete_foreign(struct store_db *db, const uint8_t job[16], const uint8_t owner[32])
{
	static const struct store_field field = {STORE_BLOB, 0, 16};
	struct store_query q = begin(
	    db, "SELECT id FROM deleted_job WHERE id = ? AND owner <> ? AND owner <> x''", job);
	uint8_t id[16];

	store_query_blob(&q, owner, 32);
	return store_query_one(&q, &(struct store_table){1, &field}, id);
}
