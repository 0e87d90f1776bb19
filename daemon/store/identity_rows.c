#include <math.h>
#include <string.h>

#include "row.h"
#include "store_inside.h"

static const struct store_field seen_fields[] = {
    {STORE_BLOB, MEMBER(store_seen, device)},
    {STORE_REAL, MEMBER(store_seen, last_contact)},
    {STORE_TEXT, MEMBER(store_seen, agent)},
    {STORE_TEXT, MEMBER(store_seen, reason)},
    {STORE_TEXT, MEMBER(store_seen, refused)},
    {STORE_REAL, MEMBER(store_seen, refused_at)},
    {STORE_TEXT, MEMBER(store_seen, aborted)},
    {STORE_REAL, MEMBER(store_seen, aborted_at)},
    {STORE_REAL, MEMBER(store_seen, clock_offset)},
    {STORE_REAL, MEMBER(store_seen, disk_free)},
    {STORE_BLOB, MEMBER(store_seen, machine)},
    {STORE_BLOB, MEMBER(store_seen, other_machine)},
};
static const struct store_table seen_table = STORE_TABLE(seen_fields);

/* One key of a device; columns as fields, like the rows of rows.c. */
struct key_row {
	uint8_t key[32], device[32];
};
static const struct store_field key_fields[] = {
    {STORE_BLOB, MEMBER(key_row, key)},
    {STORE_BLOB, MEMBER(key_row, device)},
};
static const struct store_table key_table = STORE_TABLE(key_fields);

#define SEEN \
	"device, last_contact, agent, reason, refused, refused_at, aborted, aborted_at, " \
	"clock_offset, disk_free, machine, other_machine"

enum err
store_key_put(struct store_db *db, const uint8_t key[32], const uint8_t device[32])
{
	struct store_query q =
	    store_query_begin(db, "INSERT INTO device_key (key, device) VALUES (?,?)");

	store_query_blob(&q, key, 32);
	store_query_blob(&q, device, 32);
	return store_query_done(&q);
}

enum err
store_key_get(struct store_db *db, const uint8_t key[32], uint8_t device[32])
{
	struct store_query q = store_query_begin(db,
	    "SELECT key, device" STORE_JUDGED(
		"device_key", STORE_SUM_KEY) " FROM device_key WHERE key = ?");
	struct key_row row;

	store_query_blob(&q, key, 32);
	enum err e = store_query_one(&q, &key_table, &row);
	if (!e)
		memcpy(device, row.device, 32);
	return e;
}

enum err
store_key_each(struct store_db *db,
    enum err (*fn)(void *ctx, const uint8_t key[32], const uint8_t device[32]), void *ctx)
{
	struct store_query q = store_query_begin(db,
	    "SELECT key, device" STORE_JUDGED(
		"device_key", STORE_SUM_KEY) " FROM device_key ORDER BY key");
	struct key_row row;

	while (store_query_next(&q, &key_table, &row))
		q.e = fn(ctx, row.key, row.device);
	return store_query_end(&q);
}

static const struct store_field id_fields[] = {{STORE_BLOB, 0, 32}};
static const struct store_table id_table = STORE_TABLE(id_fields);

enum err
store_key_retire(struct store_db *db, const uint8_t key[32], double now)
{
	static const struct store_field field = {STORE_REAL, 0, 0};
	struct store_query q = store_query_begin(db,
	    "UPDATE device_key SET retired_at = ?, retired_after = "
	    "(SELECT coalesce(max(rowid), 0) FROM accept) WHERE key = ?");

	store_query_row(&q, &(struct store_table){1, &field}, &now);
	store_query_blob(&q, key, 32);
	return store_query_done(&q);
}

/* Rows of `accept` are numbered in the order in which they came, whatever their times say. If SQLite gives a number again, a later row has
 * it, and the key only stays longer. */
enum err
store_key_prune(struct store_db *db, struct store_pruning *p)
{
	struct store_query q = store_query_begin(db,
	    "DELETE FROM device_key WHERE key IN (	SELECT key FROM device_key WHERE device = "
	    "? "
	    "AND key NOT IN (?, ?) AND 	    retired_after IS NOT NULL AND NOT EXISTS (SELECT 1 "
	    "FROM accept WHERE device = ?		AND accept.rowid <= retired_after) LIMIT "
	    "?) RETURNING "
	    "key");

	store_query_blob(&q, p->device, 32);
	store_query_blob(&q, p->present, 32);
	store_query_blob(&q, p->previous, 32);
	store_query_blob(&q, p->device, 32);
	store_query_unsigned(&q, STORE_KEYS_PRUNED);
	for (p->count = 0;
	     p->count < STORE_KEYS_PRUNED && store_query_next(&q, &id_table, p->gone[p->count]);)
		p->count++;
	return store_query_end(&q);
}

enum err
store_name_holder(struct store_db *db, const char *name, const uint8_t but[32], uint8_t holder[32])
{
	struct store_query q = store_query_begin(db,
	    "SELECT id FROM device WHERE name = ? AND state IN ('active', 'suspended') AND id <> ? "
	    "LIMIT 1");

	store_query_text(&q, name, strlen(name), SIZE_MAX);
	store_query_blob(&q, but, 32);
	return store_query_one(&q, &id_table, holder);
}

enum err
store_name_doubles(
    struct store_db *db, enum err (*fn)(void *ctx, const uint8_t device[32]), void *ctx)
{
	struct store_query q = store_query_begin(db,
	    "SELECT id FROM device AS d WHERE state IN ('active', 'suspended') AND name <> '' AND "
	    "EXISTS (SELECT 1 FROM device AS older WHERE older.name = d.name AND "
	    "older.state IN ('active', 'suspended') AND older.rowid < d.rowid) "
	    "ORDER BY name, rowid");
	uint8_t device[32];

	while (store_query_next(&q, &id_table, device))
		q.e = fn(ctx, device);
	return store_query_end(&q);
}

enum err
store_seen_put(struct store_db *db, const struct store_seen *s)
{
	struct store_query q = store_query_begin(
	    db, "INSERT OR REPLACE INTO seen (" SEEN ") VALUES (?,?,?,?,?,?,?,?,?,?,?,?)");

	store_query_row(&q, &seen_table, s);
	return store_query_done(&q);
}

enum err
store_seen_each(
    struct store_db *db, enum err (*fn)(void *ctx, const struct store_seen *s), void *ctx)
{
	struct store_query q = store_query_begin(db, "SELECT " SEEN " FROM seen ORDER BY device");
	struct store_seen s;

	while (store_query_next(&q, &seen_table, &s))
		q.e = fn(ctx, &s);
	return store_query_end(&q);
}

enum err
store_join_get(
    struct store_db *db, const uint8_t token[8], const uint8_t spki[91], uint8_t device[32])
{
	static const struct store_field fields[] = {{STORE_BLOB, 0, 32}};
	static const struct store_table table = STORE_TABLE(fields);
	struct store_query q = store_query_begin(db,
	    "SELECT device" STORE_JUDGED(
		"joined", "token, spki, device") " FROM joined WHERE token = ? AND spki = ?");

	store_query_blob(&q, token, 8);
	store_query_blob(&q, spki, 91);
	return store_query_one(&q, &table, device);
}

enum err
store_join_put(
    struct store_db *db, const uint8_t token[8], const uint8_t spki[91], const uint8_t device[32])
{
	struct store_query q =
	    store_query_begin(db, "INSERT INTO joined (token, spki, device) VALUES (?,?,?)");

	store_query_blob(&q, token, 8);
	store_query_blob(&q, spki, 91);
	store_query_blob(&q, device, 32);
	return store_query_done(&q);
}

enum err
store_token_used(struct store_db *db, const uint8_t id[8], double at, const char *address)
{
	static const struct store_field field = {STORE_REAL, 0, 0};
	struct store_query q =
	    store_query_begin(db, "UPDATE token SET last_used = ?, last_address = ? WHERE id = ?");

	store_query_row(&q, &(struct store_table){1, &field}, &at);
	store_query_text(&q, address, strlen(address), SIZE_MAX);
	store_query_blob(&q, id, 8);
	return store_query_done(&q);
}

/* --- a restored state */

#define RESTORED_AT "restored_at"
#define UNDATED UINT64_MAX

enum err
store_claims_restored(struct store_db *db)
{
	struct store_query q = store_query_begin(db,
	    "UPDATE device SET restored_key_at = key_at, claim = CASE claim WHEN 'contested' "
	    "THEN claim ELSE 'none' END");
	enum err e = store_query_done(&q);

	if (e)
		return e;
	q = store_query_begin(db,
	    "DELETE FROM device_claim WHERE device NOT IN "
	    "(SELECT id FROM device WHERE claim = 'contested')");
	e = store_query_done(&q);
	return e ? e : store_meta_put(db, RESTORED_AT, UNDATED);
}

enum err
store_restored_at(struct store_db *db, double *out)
{
	uint64_t at;

	enum err e = store_meta_get(db, RESTORED_AT, &at);
	*out = e ? 0 : at == UNDATED ? NAN : (double)at;
	return e == ERR_NOTFOUND ? ERR_OK : e;
}

enum err
store_keys_dated(struct store_db *db, double now)
{
	static const struct store_field field = {STORE_REAL, 0, 0};
	struct store_query q = store_query_begin(
	    db, "UPDATE device INDEXED BY device_undated SET key_at = ? WHERE key_at = 0");

	store_query_row(&q, &(struct store_table){1, &field}, &now);
	enum err e = store_query_done(&q);
	double restored_at = 0;
	if (!e)
		e = store_restored_at(db, &restored_at);
	return !e && isnan(restored_at) ? store_meta_put(db, RESTORED_AT, (uint64_t)ceil(now)) : e;
}

enum err
store_claim_use(struct store_db *db, const uint8_t device[32], const uint8_t spki[91])
{
	struct store_query q = store_query_begin(
	    db, "UPDATE device SET claim = 'used' WHERE id = ? AND spki = ? AND claim = 'none'");

	store_query_blob(&q, device, 32);
	store_query_blob(&q, spki, 91);
	return store_query_done(&q);
}

static const struct store_field claim_fields[] = {
    {STORE_BLOB, MEMBER(store_claim, device)},
    {STORE_BLOB, MEMBER(store_claim, spki)},
    {STORE_REAL, MEMBER(store_claim, issued_at)},
};
static const struct store_table claim_table = STORE_TABLE(claim_fields);

enum err
store_claim_put(struct store_db *db, const struct store_claim *c)
{
	struct store_query q = store_query_begin(db,
	    "INSERT INTO device_claim (device, spki, issued_at) VALUES (?,?,?) "
	    "ON CONFLICT (device, spki) DO NOTHING");

	store_query_row(&q, &claim_table, c);
	return store_query_done(&q);
}

enum err
store_claim_each(struct store_db *db, const uint8_t device[32],
    enum err (*fn)(void *ctx, const struct store_claim *c), void *ctx)
{
	struct store_query q = store_query_begin(db,
	    "SELECT " STORE_SUM_CLAIM STORE_JUDGED("device_claim",
		STORE_SUM_CLAIM) " FROM device_claim WHERE device = ? ORDER BY spki");
	struct store_claim c;

	store_query_blob(&q, device, 32);
	while (store_query_next(&q, &claim_table, &c))
		q.e = fn(ctx, &c);
	return store_query_end(&q);
}

enum err
store_claim_clear(struct store_db *db, const uint8_t device[32])
{
	struct store_query q = store_query_begin(db, "DELETE FROM device_claim WHERE device = ?");

	store_query_blob(&q, device, 32);
	return store_query_done(&q);
}

/* --- what identities have written */

static const struct store_field spent_fields[] = {
    {STORE_BLOB, MEMBER(store_spent, who)},
    {STORE_UNSIGNED, MEMBER(store_spent, hour)},
    {STORE_UNSIGNED, MEMBER(store_spent, bytes)},
};
static const struct store_table spent_table = STORE_TABLE(spent_fields);

static enum err
sweep_spent(struct store_db *db, uint64_t hour, uint64_t hours)
{
	struct store_query q =
	    store_query_begin(db, "DELETE FROM spent WHERE hour <= ? OR hour >= ?");

	store_query_unsigned(&q, hour > hours ? hour - hours : 0);
	store_query_unsigned(&q, hour + hours);
	return store_query_done(&q);
}

enum err
store_spent_add(struct store_db *db, const struct store_spent *s, uint64_t hours)
{
	struct store_query q = store_query_begin(db,
	    "INSERT INTO spent (who, hour, bytes) VALUES (?,?,?) "
	    "ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes");

	store_query_row(&q, &spent_table, s);
	enum err e = store_query_done(&q);
	return e ? e : sweep_spent(db, s->hour, hours);
}

enum err
store_spent_each(
    struct store_db *db, enum err (*fn)(void *ctx, const struct store_spent *s), void *ctx)
{
	struct store_query q =
	    store_query_begin(db, "SELECT who, hour, bytes FROM spent ORDER BY hour");
	struct store_spent row;

	while (store_query_next(&q, &spent_table, &row))
		q.e = fn(ctx, &row);
	return store_query_end(&q);
}
