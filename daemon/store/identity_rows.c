#include <string.h>

#include "store_inside.h"

#define AT(member) offsetof(struct store_seen, member)
#define ARRAY(member) AT(member), sizeof(((struct store_seen *)0)->member)

static const struct store_field seen_fields[] = {
    {STORE_BLOB, ARRAY(device)},
    {STORE_REAL, AT(last_contact), 0},
    {STORE_TEXT, ARRAY(agent)},
    {STORE_TEXT, ARRAY(reason)},
    {STORE_TEXT, ARRAY(refused)},
    {STORE_REAL, AT(refused_at), 0},
    {STORE_TEXT, ARRAY(aborted)},
    {STORE_REAL, AT(aborted_at), 0},
    {STORE_REAL, AT(clock_offset), 0},
    {STORE_REAL, AT(disk_free), 0},
    {STORE_BLOB, ARRAY(machine)},
    {STORE_BLOB, ARRAY(other_machine)},
};
static const struct store_table seen_table = {
    sizeof(seen_fields) / sizeof(seen_fields[0]), seen_fields};

/* One key of a device; columns as fields, like the rows of store_rows.c. */
struct key_row {
	uint8_t key[32], device[32];
};
static const struct store_field key_fields[] = {
    {STORE_BLOB, offsetof(struct key_row, key), 32},
    {STORE_BLOB, offsetof(struct key_row, device), 32},
};
static const struct store_table key_table = {2, key_fields};

enum statement {
	KEY_PUT = STORE_IDENTITY_STATEMENTS,
	KEY_GET,
	KEY_EACH,
	SEEN_PUT,
	SEEN_EACH,
	STATEMENTS_END
};
_Static_assert(
    (int)STATEMENTS_END <= (int)STORE_STATEMENTS, "the cache has a place for each statement");

#define SEEN \
	"device, last_contact, agent, reason, refused, refused_at, aborted, aborted_at, " \
	"clock_offset, disk_free, machine, other_machine"

enum err
store_key_put(struct store_db *db, const uint8_t key[32], const uint8_t device[32])
{
	struct store_query q =
	    store_query_begin(db, KEY_PUT, "INSERT INTO device_key (key, device) VALUES (?,?)");

	store_query_blob(&q, key, 32);
	store_query_blob(&q, device, 32);
	return store_query_done(&q);
}

enum err
store_key_get(struct store_db *db, const uint8_t key[32], uint8_t device[32])
{
	struct store_query q =
	    store_query_begin(db, KEY_GET, "SELECT key, device FROM device_key WHERE key = ?");
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
	struct store_query q =
	    store_query_begin(db, KEY_EACH, "SELECT key, device FROM device_key ORDER BY key");
	struct key_row row;

	while (store_query_next(&q, &key_table, &row))
		q.e = fn(ctx, row.key, row.device);
	return store_query_end(&q);
}

enum err
store_seen_put(struct store_db *db, const struct store_seen *s)
{
	struct store_query q = store_query_begin(db, SEEN_PUT,
	    "INSERT OR REPLACE INTO seen (" SEEN ") VALUES (?,?,?,?,?,?,?,?,?,?,?,?)");

	store_query_row(&q, &seen_table, s);
	return store_query_done(&q);
}

enum err
store_seen_each(
    struct store_db *db, enum err (*fn)(void *ctx, const struct store_seen *s), void *ctx)
{
	struct store_query q =
	    store_query_begin(db, SEEN_EACH, "SELECT " SEEN " FROM seen ORDER BY device");
	struct store_seen s;

	while (store_query_next(&q, &seen_table, &s))
		q.e = fn(ctx, &s);
	return store_query_end(&q);
}
