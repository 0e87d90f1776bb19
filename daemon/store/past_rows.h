#ifndef PAST_ROWS_H
#define PAST_ROWS_H
#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "row.h"

struct store_db;

/*
 * What is shown of jobs that are over, so that nobody has to read their documents and rounds for it. It follows from those: a job
 * without such a row is only slower. Results as in store.h.
 */
struct store_past {
	uint8_t id[16], owner[32];
	char name[64];
	enum job_state state;
	char reason[STORE_REASON_MAX];
	uint64_t priority; /* of an int64_t */
	double created_at, ended_at;
	uint64_t round, rounds_committed;
	uint8_t base[32], model[32]; /* of the newest round; what it has come to */
	uint64_t model_bytes, parameters;
	struct store_metric metric;
	uint64_t metric_round;
	bool is_guarded, has_best;
	uint64_t bad, rollbacks, base_round, best_round; /* of its guard */
	uint8_t best_model[32];
	double best_value;
	bool only_evaluates; /* its job made no models */
	char monitor[80]; /* job_monitor_word; "": it has none */
	bool monitor_rises;
	uint64_t keep_last, keep_every; /* of its document */
};
/* Insert or replace. ERR_NOTFOUND if there is no such job. */
ERR_MUST_USE enum err store_past_put(struct store_db *db, const struct store_past *p);
ERR_MUST_USE enum err store_past_get(
    struct store_db *db, const uint8_t id[16], struct store_past *out);
/* Jobs that are over, and nobody knows since when, ended now. */
ERR_MUST_USE enum err store_past_dated(struct store_db *db, double now);

/* Which jobs there are, by age, without a look at their documents. */
struct store_job_brief {
	uint8_t id[16];
	enum job_state state;
	bool past; /* it has such a row */
};
ERR_MUST_USE enum err store_job_brief_each(
    struct store_db *db, enum err (*fn)(void *ctx, const struct store_job_brief *j), void *ctx);

/*
 * Jobs that are deleted: what a job's rows hold goes, also the details of its entries in the audit log that are its own words or name
 * its devices. The entries stay, and a tombstone: the same document would make the same task ids again.
 */

/* The tasks of the accepted deltas of rounds from..to. */
ERR_MUST_USE enum err store_delete_tasks(struct store_db *db, const uint8_t job[16], uint64_t from,
    uint64_t to, enum err (*fn)(void *ctx, const uint8_t task[16], uint64_t bytes), void *ctx);
/* Accepted deltas of these rounds, and the details of their records. */
ERR_MUST_USE enum err store_delete_reports(
    struct store_db *db, const uint8_t job[16], uint64_t from, uint64_t to);
/* The rest: rounds, job, its document in the audit log; leaves the tombstone. ERR_NOTFOUND. */
ERR_MUST_USE enum err store_delete_job(struct store_db *db, const uint8_t job[16], double now);
/* Is there a tombstone? ERR_NOTFOUND. */
ERR_MUST_USE enum err store_delete_known(struct store_db *db, const uint8_t job[16]);
/* Is there one, of another owner's job? ERR_NOTFOUND, also where nobody knows whose it was. */
ERR_MUST_USE enum err store_delete_foreign(
    struct store_db *db, const uint8_t job[16], const uint8_t owner[32]);

#endif
