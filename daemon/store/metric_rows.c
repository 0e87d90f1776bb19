#include "metric_rows.h"

#include "store_inside.h"

enum statement { PUT = STORE_METRIC_STATEMENTS, EACH, STATEMENTS };
_Static_assert((int)STATEMENTS <= (int)STORE_PAST_STATEMENTS, "the cache has a place for each");

static const struct store_field fields[] = {
    {STORE_TEXT, offsetof(struct metric_row, name), sizeof(((struct metric_row *)0)->name)},
    {STORE_REAL, offsetof(struct metric_row, mean), 0},
    {STORE_UNSIGNED, offsetof(struct metric_row, reports), 0},
};
static const struct store_table table = {3, fields};

enum err
metric_rows_put(
    struct store_db *db, const uint8_t job[16], uint64_t round, const struct metric_row *row)
{
	struct store_query q = store_query_begin(db, PUT,
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
	struct store_query q = store_query_begin(db, EACH,
	    "SELECT name, mean, reports FROM round_metric WHERE job = ? AND round = ? "
	    "ORDER BY name");
	struct metric_row row;

	store_query_blob(&q, job, 16);
	store_query_unsigned(&q, round);
	while (store_query_next(&q, &table, &row))
		q.e = fn(ctx, &row);
	return store_query_end(&q);
}
