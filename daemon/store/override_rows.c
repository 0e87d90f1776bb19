#include <string.h>

#include "store_inside.h"

struct row {
	char *text;
};
static const struct store_field field = {STORE_LONG_TEXT, offsetof(struct row, text), 0};
static const struct store_table table = {1, &field};

static enum err
take(struct store_query *q, char **text)
{
	struct row row = {.text = NULL};
	enum err e = store_query_one_owned(q, &table, &row, &row.text, NULL);

	*text = row.text;
	return e;
}

enum err
store_override_get(struct store_db *db, const uint8_t job[16], char **text)
{
	struct store_query q = store_query_begin(db,
	    "SELECT overrides" STORE_JUDGED(
		"job_override", "job, overrides") " FROM job_override WHERE job = ?");

	store_query_blob(&q, job, 16);
	return take(&q, text);
}

enum err
store_override_put(struct store_db *db, const uint8_t job[16], const char *text)
{
	struct store_query q = text
	    ? store_query_begin(
		  db, "INSERT OR REPLACE INTO job_override (job, overrides) VALUES (?,?)")
	    : store_query_begin(db, "DELETE FROM job_override WHERE job = ?");

	store_query_blob(&q, job, 16);
	if (text)
		store_query_text(&q, text, strlen(text), SIZE_MAX);
	return store_query_done(&q);
}

enum err
store_override_of_round(struct store_db *db, const uint8_t job[16], uint64_t round, char **text)
{
	struct store_query q = store_query_begin(db,
	    "SELECT overrides" STORE_JUDGED("round_override",
		"job, round, overrides") " FROM round_override WHERE job = ? AND round = ?");

	store_query_blob(&q, job, 16);
	store_query_unsigned(&q, round);
	return take(&q, text);
}

enum err
store_override_put_round(
    struct store_db *db, const uint8_t job[16], uint64_t round, const char *text)
{
	struct store_query q = store_query_begin(
	    db, "INSERT OR REPLACE INTO round_override (job, round, overrides) VALUES (?,?,?)");

	store_query_blob(&q, job, 16);
	store_query_unsigned(&q, round);
	store_query_text(&q, text, strlen(text), SIZE_MAX);
	return store_query_done(&q);
}

enum err
store_stamp_get(struct store_db *db, const uint8_t job[16], char **text)
{
	struct store_query q = store_query_begin(db,
	    "SELECT stamp" STORE_JUDGED("job_stamp", "job, stamp") " FROM job_stamp WHERE job = ?");

	store_query_blob(&q, job, 16);
	return take(&q, text);
}

enum err
store_stamp_put(struct store_db *db, const uint8_t job[16], const char *text)
{
	struct store_query q =
	    store_query_begin(db, "INSERT OR REPLACE INTO job_stamp (job, stamp) VALUES (?,?)");

	store_query_blob(&q, job, 16);
	store_query_text(&q, text, strlen(text), SIZE_MAX);
	return store_query_done(&q);
}
