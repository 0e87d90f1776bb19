#include "metric_rows.h"

#include <string.h>

#include "best.h"
#include "store_inside.h"

static const struct store_field fields[] = {
    {STORE_TEXT, MEMBER(metric_row, name)},
    {STORE_REAL, MEMBER(metric_row, mean)},
    {STORE_UNSIGNED, MEMBER(metric_row, reports)},
};
static const struct store_table table = STORE_TABLE(fields);

enum err
metric_rows_put(
    struct store_db *db, const uint8_t job[16], uint64_t round, const struct metric_row *row)
{
	struct store_query q = store_query_begin(db,
	    "INSERT OR REPLACE INTO round_metric (job, round, name, mean, reports) "
	    "VALUES (?,?,?,?,?)");

	store_query_blob(&q, job, 16);
	store_query_unsigned(&q, round);
	store_query_row(&q, &table, row);
	return store_query_done(&q);
}

enum err
metric_rows_each(struct store_db *db, const uint8_t job[16], uint64_t round,
    enum err (*fn)(void *ctx, const struct metric_row *row), void *ctx)
{
	struct store_query q = store_query_begin(db,
	    "SELECT name, mean, reports" STORE_JUDGED("round_metric",
		"job, round, name, mean, reports") " FROM round_metric WHERE job = ? AND round = ? "
						   "ORDER BY name");
	struct metric_row row;

	store_query_blob(&q, job, 16);
	store_query_unsigned(&q, round);
	while (store_query_next(&q, &table, &row))
		q.e = fn(ctx, &row);
	return store_query_end(&q);
}

/* --- figures */

enum err
metric_rows_put_figures(
    struct store_db *db, const uint8_t job[16], uint64_t round, const char *text)
{
	struct store_query q = store_query_begin(
	    db, "INSERT OR REPLACE INTO round_figures (job, round, figures) VALUES (?,?,?)");

	store_query_blob(&q, job, 16);
	store_query_unsigned(&q, round);
	store_query_text(&q, text, strlen(text), SIZE_MAX);
	return store_query_done(&q);
}

struct figures_row {
	char *text;
};

enum err
metric_rows_figures(struct store_db *db, const uint8_t job[16], uint64_t round, char **text)
{
	static const struct store_field field = {
	    STORE_LONG_TEXT, offsetof(struct figures_row, text), 0};
	struct figures_row row = {.text = NULL};
	struct store_query q = store_query_begin(db,
	    "SELECT figures" STORE_JUDGED("round_figures",
		"job, round, figures") " FROM round_figures WHERE job = ? AND round = ?");

	store_query_blob(&q, job, 16);
	store_query_unsigned(&q, round);
	enum err e =
	    store_query_one_owned(&q, &(struct store_table){1, &field}, &row, &row.text, NULL);
	*text = row.text;
	return e;
}

/* --- the best models */

struct best_row {
	uint64_t place, round;
	uint8_t model[32];
	double value;
};
static const struct store_field best_fields[] = {
    {STORE_UNSIGNED, MEMBER(best_row, place)},
    {STORE_UNSIGNED, MEMBER(best_row, round)},
    {STORE_BLOB, MEMBER(best_row, model)},
    {STORE_REAL, MEMBER(best_row, value)},
};
static const struct store_table best_table = STORE_TABLE(best_fields);

enum err
metric_rows_put_best(struct store_db *db, const uint8_t job[16], const struct best *best)
{
	struct store_query q = store_query_begin(db, "DELETE FROM best_model WHERE job = ?");

	store_query_blob(&q, job, 16);
	enum err e = store_query_done(&q);
	for (uint32_t i = 0; i < best->count && !e; i++) {
		struct best_row row = {
		    .place = i, .round = best->points[i].round, .value = best->points[i].value};
		memcpy(row.model, best->points[i].model, 32);
		q = store_query_begin(db,
		    "INSERT INTO best_model (job, place, round, model, value) VALUES (?,?,?,?,?)");
		store_query_blob(&q, job, 16);
		store_query_row(&q, &best_table, &row);
		e = store_query_done(&q);
	}
	return e;
}

enum err
metric_rows_best(struct store_db *db, const uint8_t job[16], struct best *out)
{
	struct store_query q = store_query_begin(db,
	    "SELECT place, round, model, value" STORE_JUDGED("best_model",
		"job, place, round, model, value") " FROM best_model WHERE job = ? ORDER BY place");
	struct best_row row;

	*out = (struct best){.count = 0};
	store_query_blob(&q, job, 16);
	while (store_query_next(&q, &best_table, &row)) {
		if (out->count == BEST_MAX) {
			q.e = ERR_CORRUPT;
			continue;
		}
		struct best_point *p = &out->points[out->count++];
		*p = (struct best_point){.value = row.value, .round = row.round};
		memcpy(p->model, row.model, 32);
	}
	return store_query_end(&q);
}
