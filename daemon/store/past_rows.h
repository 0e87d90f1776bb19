#ifndef PAST_ROWS_H
#define PAST_ROWS_H
#include "store.h"

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

#endif
