#ifndef PAST_ROWS_H
#define PAST_ROWS_H
#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "row.h"

struct store_db;

/*
 * What is shown of a job that has ended, in one row, so that a list of jobs need not read the job's document and rounds. The row follows
 * from document and rounds: without the row a job is only slower to show. Results as in store.h.
 */
struct store_past {
	uint8_t id[16], owner[32];
	char name[64];
	enum job_state state;
	char reason[STORE_REASON_MAX];
	uint64_t priority; /* of an int64_t */
	double created_at, ended_at;
	uint64_t round, rounds_committed;
	uint8_t base[32], model[32]; /* base of the newest round; model that the job has come to */
	uint64_t model_bytes, parameters;
	struct store_metric metric;
	uint64_t metric_round;
	bool is_guarded, has_best;
	uint64_t bad, rollbacks, base_round, best_round; /* of the job's guard */
	uint8_t best_model[32];
	double best_value;
	bool only_evaluates; /* the job made no models */
	char monitor[80]; /* job_monitor_word; "": the job has no monitor */
	bool monitor_rises;
	uint64_t keep_last, keep_every; /* from the job's document */
};
/* Inserts or replaces a row. ERR_NOTFOUND if there is no such job. */
ERR_MUST_USE enum err store_past_put(struct store_db *db, const struct store_past *p);
ERR_MUST_USE enum err store_past_get(
    struct store_db *db, const uint8_t id[16], struct store_past *out);
/* Sets the end to `now` for each ended job whose time of ending is not known. */
ERR_MUST_USE enum err store_past_dated(struct store_db *db, double now);

/* Which jobs there are, the oldest first, without reading their documents. */
struct store_job_brief {
	uint8_t id[16];
	enum job_state state;
	bool past; /* the job has a store_past row */
};
ERR_MUST_USE enum err store_job_brief_each(
    struct store_db *db, enum err (*fn)(void *ctx, const struct store_job_brief *j), void *ctx);

/*
 * Deleting jobs: a job's rows go, and in the audit log the details of the job's entries that hold its document or name its devices. The
 * entries stay, and a tombstone with the job's id: submitted again, the same document would make the same task ids.
 */

/* Calls fn with task and body bytes of each accepted delta whose task is of a round in from..to. */
ERR_MUST_USE enum err store_delete_tasks(struct store_db *db, const uint8_t job[16], uint64_t from,
    uint64_t to, enum err (*fn)(void *ctx, const uint8_t task[16], uint64_t bytes), void *ctx);
/* Deletes what rounds from..to have beside their own rows: accepted deltas, audit details, metrics, figures, overrides, evaluations. */
ERR_MUST_USE enum err store_delete_reports(
    struct store_db *db, const uint8_t job[16], uint64_t from, uint64_t to);
/* Deletes all of the job that is left, also its document in the audit log, and leaves the tombstone. ERR_NOTFOUND. */
ERR_MUST_USE enum err store_delete_job(struct store_db *db, const uint8_t job[16], double now);
/* ERR_OK: the job was deleted, its tombstone is there; else ERR_NOTFOUND. */
ERR_MUST_USE enum err store_delete_known(struct store_db *db, const uint8_t job[16]);
/* ERR_OK: the deleted job belonged to another owner; else ERR_NOTFOUND, also where the tombstone has no owner. */
ERR_MUST_USE enum err store_delete_foreign(
    struct store_db *db, const uint8_t job[16], const uint8_t owner[32]);

#endif
