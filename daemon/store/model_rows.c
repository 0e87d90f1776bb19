#include "store_inside.h"

#include "row.h"

static const struct store_field model_fields[] = {
    {STORE_BLOB, MEMBER(store_model, id)},
    {STORE_UNSIGNED, MEMBER(store_model, bytes)},
    {STORE_BLOB, MEMBER(store_model, job)},
    {STORE_UNSIGNED, MEMBER(store_model, round)},
    {STORE_REAL, MEMBER(store_model, created_at)},
    {STORE_BLOB, MEMBER(store_model, owner)},
};
static const struct store_table model_table = STORE_TABLE(model_fields);

static const struct store_field bytes_field = {STORE_UNSIGNED, 0, 0};
static const struct store_table bytes_table = {1, &bytes_field};

#define MODEL STORE_SUM_MODEL
#define NOBODY "zeroblob(32)"

enum err
store_model_put(struct store_db *db, const struct store_model *m)
{
	struct store_query q = store_query_begin(
	    db, "INSERT INTO model (" MODEL ") VALUES (?,?,?,?,?,?) ON CONFLICT (id) DO NOTHING");

	store_query_row(&q, &model_table, m);
	return store_query_done(&q);
}

enum err
store_model_get(struct store_db *db, const uint8_t id[32], struct store_model *out)
{
	struct store_query q = store_query_begin(
	    db, "SELECT " MODEL STORE_JUDGED("model", MODEL) " FROM model WHERE id = ?");

	store_query_blob(&q, id, 32);
	return store_query_one(&q, &model_table, out);
}

struct model_lookup {
	const uint8_t *id;
	struct store_model *out;
};

static enum err
get_model(struct store_db *db, void *arg, struct why *why)
{
	const struct model_lookup *l = arg;

	(void)why;
	return store_model_get(db, l->id, l->out);
}

enum err
store_model_find(struct store *s, const uint8_t id[32], struct store_model *out)
{
	struct model_lookup l = {id, out};

	return store_read(s, get_model, &l, NULL);
}

enum err
store_model_pin(struct store_db *db, const uint8_t id[32], const uint8_t owner[32])
{
	/* A model that a job made is its owner's, and stays that when another one's job begins with it. */
	struct store_query q = store_query_begin(db,
	    "UPDATE model SET job = zeroblob(16), round = 0, "
	    "owner = coalesce(nullif(owner, " NOBODY "), "
	    "(SELECT nullif(owner, " NOBODY
	    ") FROM job WHERE job.id = model.job), ?2) WHERE id = ?1");

	store_query_blob(&q, id, 32);
	store_query_blob(&q, owner, 32);
	enum err e = store_query_done(&q);
	return !e && sqlite3_changes(db->sql) == 0 ? ERR_NOTFOUND : e;
}

enum err
store_model_owned(struct store_db *db, const uint8_t owner[32], uint64_t *bytes)
{
	struct store_query q = store_query_begin(db,
	    "SELECT coalesce(sum(bytes), 0) FROM model WHERE owner = ?1 "
	    "OR job IN (SELECT id FROM job INDEXED BY job_owner WHERE owner = ?1)");

	store_query_blob(&q, owner, 32);
	return store_query_one(&q, &bytes_table, bytes);
}

enum err
store_model_delete(struct store_db *db, const uint8_t id[32])
{
	struct store_query q = store_query_begin(db, "DELETE FROM model WHERE id = ?");

	store_query_blob(&q, id, 32);
	enum err e = store_query_done(&q);
	return !e && sqlite3_changes(db->sql) == 0 ? ERR_NOTFOUND : e;
}

enum err
store_model_each(
    struct store_db *db, enum err (*fn)(void *ctx, const struct store_model *m), void *ctx)
{
	struct store_query q = store_query_begin(
	    db, "SELECT " MODEL STORE_JUDGED("model", MODEL) " FROM model ORDER BY rowid");
	struct store_model m;

	while (store_query_next(&q, &model_table, &m))
		q.e = fn(ctx, &m);
	return store_query_end(&q);
}
