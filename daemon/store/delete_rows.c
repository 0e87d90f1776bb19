#include "past_rows.h"

#include "store_inside.h"

enum statement {
	TASKS = STORE_DELETE_STATEMENTS,
	REPORTS,
	RECORDS,
	METRICS,
	FIGURES,
	OVERRIDES,
	EVALUATIONS,
	OVERRIDE,
	STAMP,
	BEST,
	SPEEDS,
	SIZED,
	OUT,
	DOCUMENT,
	ROUNDS,
	PAST,
	JOB,
	TOMBSTONE,
	KNOWN,
	OTHERS,
	STATEMENTS
};
_Static_assert((int)STATEMENTS <= (int)STORE_METRIC_STATEMENTS, "the cache has a place for each");

/* A job's document is the last detail of the entry about its submission. */
static const char *const texts[] = {
    [TASKS - STORE_DELETE_STATEMENTS] =
	"SELECT task, body_bytes FROM accept WHERE job = ? AND round BETWEEN ? AND ?",
    [REPORTS - STORE_DELETE_STATEMENTS] =
	"DELETE FROM accept WHERE job = ? AND round BETWEEN ? AND ?",
    [RECORDS - STORE_DELETE_STATEMENTS] =
	("DELETE FROM audit_detail WHERE seq IN "
	 "(SELECT seq FROM audit WHERE job = ? AND round BETWEEN ? AND ?)"),
    [METRICS - STORE_DELETE_STATEMENTS] =
	"DELETE FROM round_metric WHERE job = ? AND round BETWEEN ? AND ?",
    [FIGURES - STORE_DELETE_STATEMENTS] =
	"DELETE FROM round_figures WHERE job = ? AND round BETWEEN ? AND ?",
    [OVERRIDES - STORE_DELETE_STATEMENTS] =
	"DELETE FROM round_override WHERE job = ? AND round BETWEEN ? AND ?",
    [EVALUATIONS - STORE_DELETE_STATEMENTS] =
	"DELETE FROM evaluation WHERE job = ? AND round BETWEEN ? AND ?",
    [OVERRIDE - STORE_DELETE_STATEMENTS] = "DELETE FROM job_override WHERE job = ?",
    [STAMP - STORE_DELETE_STATEMENTS] = "DELETE FROM job_stamp WHERE job = ?",
    [BEST - STORE_DELETE_STATEMENTS] = "DELETE FROM best_model WHERE job = ?",
    [SPEEDS - STORE_DELETE_STATEMENTS] = "DELETE FROM speed WHERE job = ?",
    [SIZED - STORE_DELETE_STATEMENTS] = "DELETE FROM sized WHERE job = ?",
    [OUT - STORE_DELETE_STATEMENTS] = "DELETE FROM task_out WHERE job = ?",
    [DOCUMENT - STORE_DELETE_STATEMENTS] =
	("DELETE FROM audit_detail WHERE (seq, place) IN "
	 "(SELECT seq, max(place) FROM audit JOIN audit_detail USING (seq) WHERE job = ? "
	 "AND body LIKE '{\"event\":\"job.submitted\"%' GROUP BY seq)"),
    [ROUNDS - STORE_DELETE_STATEMENTS] = "DELETE FROM round WHERE job = ?",
    [PAST - STORE_DELETE_STATEMENTS] = "DELETE FROM past_job WHERE id = ?",
    [JOB - STORE_DELETE_STATEMENTS] = "DELETE FROM job WHERE id = ?",
    [TOMBSTONE - STORE_DELETE_STATEMENTS] =
	"INSERT INTO deleted_job (id, at, owner) SELECT id, ?2, owner FROM job WHERE id = ?1",
    [KNOWN - STORE_DELETE_STATEMENTS] = "SELECT id FROM deleted_job WHERE id = ?",
    [OTHERS - STORE_DELETE_STATEMENTS] =
	"SELECT id FROM deleted_job WHERE id = ? AND owner <> ? AND owner <> x''",
};

static struct store_query
begin(struct store_db *db, enum statement which, const uint8_t job[16])
{
	struct store_query q =
	    store_query_begin(db, (int)which, texts[which - STORE_DELETE_STATEMENTS]);

	store_query_blob(&q, job, 16);
	return q;
}

static struct store_query
begin_rounds(
    struct store_db *db, enum statement which, const uint8_t job[16], uint64_t from, uint64_t to)
{
	struct store_query q = begin(db, which, job);

	store_query_unsigned(&q, from);
	store_query_unsigned(&q, to);
	return q;
}

struct task_row {
	uint8_t task[16];
	uint64_t bytes;
};
static const struct store_field task_fields[] = {
    {STORE_BLOB, offsetof(struct task_row, task), 16},
    {STORE_UNSIGNED, offsetof(struct task_row, bytes), 0},
};
static const struct store_table task_table = {2, task_fields};

enum err
store_delete_tasks(struct store_db *db, const uint8_t job[16], uint64_t from, uint64_t to,
    enum err (*fn)(void *ctx, const uint8_t task[16], uint64_t bytes), void *ctx)
{
	struct store_query q = begin_rounds(db, TASKS, job, from, to);
	struct task_row row;

	while (store_query_next(&q, &task_table, &row))
		q.e = fn(ctx, row.task, row.bytes);
	return store_query_end(&q);
}

enum err
store_delete_reports(struct store_db *db, const uint8_t job[16], uint64_t from, uint64_t to)
{
	static const enum statement all[] = {
	    REPORTS, RECORDS, METRICS, FIGURES, OVERRIDES, EVALUATIONS};
	enum err e = ERR_OK;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) && !e; i++) {
		struct store_query q = begin_rounds(db, all[i], job, from, to);
		e = store_query_done(&q);
	}
	return e;
}

static enum err
run(struct store_db *db, enum statement which, const uint8_t job[16])
{
	struct store_query q = begin(db, which, job);

	return store_query_done(&q);
}

enum err
store_delete_job(struct store_db *db, const uint8_t job[16], double now)
{
	/* What refers to the job before the job. */
	static const enum statement all[] = {
	    DOCUMENT, BEST, SPEEDS, SIZED, OUT, OVERRIDE, STAMP, ROUNDS, PAST, JOB};
	const struct store_field field = {STORE_REAL, 0, 0};
	struct store_query q = begin(db, TOMBSTONE, job);

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
	struct store_query q = begin(db, KNOWN, job);
	uint8_t id[16];

	return store_query_one(&q, &(struct store_table){1, &field}, id);
}

enum err
store_delete_foreign(struct store_db *db, const uint8_t job[16], const uint8_t owner[32])
{
	static const struct store_field field = {STORE_BLOB, 0, 16};
	struct store_query q = begin(db, OTHERS, job);
	uint8_t id[16];

	store_query_blob(&q, owner, 32);
	return store_query_one(&q, &(struct store_table){1, &field}, id);
}
