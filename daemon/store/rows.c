#include <string.h>

#include "row.h"
#include "store_inside.h"

#define META_KEY_MAX 64

static const struct store_field device_fields[] = {
    {STORE_BLOB, MEMBER(store_device, id)},
    {STORE_BLOB, MEMBER(store_device, spki)},
    {STORE_TEXT, MEMBER(store_device, name)},
    {STORE_TEXT, MEMBER(store_device, role)},
    {STORE_DEVICE_STATE, MEMBER(store_device, state)},
    {STORE_TEXT, MEMBER(store_device, labels)},
    {STORE_REAL, MEMBER(store_device, joined_at)},
    {STORE_BLOB, MEMBER(store_device, previous)},
    {STORE_UNSIGNED, MEMBER(store_device, ca_generation)},
    {STORE_REAL, MEMBER(store_device, rotations_at)},
    {STORE_REAL, MEMBER(store_device, key_at)},
    {STORE_REAL, MEMBER(store_device, restored_key_at)},
    {STORE_DEVICE_CLAIM, MEMBER(store_device, claim)},
};
static const struct store_table device_table = STORE_TABLE(device_fields);

struct token_row {
	struct store_token token;
	uint64_t row;
};
static const struct store_field token_row_fields[] = {
    {STORE_BLOB, MEMBER(store_token, id)}, {STORE_BLOB, MEMBER(store_token, secret_hash)},
    {STORE_TEXT, MEMBER(store_token, role)}, {STORE_TEXT, MEMBER(store_token, labels)},
    {STORE_UNSIGNED, MEMBER(store_token, uses)}, {STORE_UNSIGNED, MEMBER(store_token, uses_left)},
    {STORE_REAL, MEMBER(store_token, created_at)}, {STORE_REAL, MEMBER(store_token, expires_at)},
    {STORE_BOOL, MEMBER(store_token, revoked)}, {STORE_BOOL, MEMBER(store_token, access)},
    {STORE_TEXT, MEMBER(store_token, name)}, {STORE_TEXT, MEMBER(store_token, name_prefix)},
    {STORE_TEXT, MEMBER(store_token, owner)}, {STORE_BOOL, MEMBER(store_token, suspended)},
    {STORE_REAL, MEMBER(store_token, last_used)}, {STORE_TEXT, MEMBER(store_token, last_address)},
    {STORE_UNSIGNED, MEMBER(token_row, row)}, /* of the second table alone */
};
static const struct store_table token_table = {
    sizeof(token_row_fields) / sizeof(token_row_fields[0]) - 1, token_row_fields};
static const struct store_table token_row_table = STORE_TABLE(token_row_fields);

static const struct store_field job_fields[] = {
    {STORE_BLOB, MEMBER(store_job, id)},
    {STORE_LONG_TEXT, offsetof(struct store_job, document),
	offsetof(struct store_job, document_len)},
    {STORE_JOB_STATE, MEMBER(store_job, state)},
    {STORE_TEXT, MEMBER(store_job, reason)},
    {STORE_REAL, MEMBER(store_job, created_at)},
    {STORE_BLOB, MEMBER(store_job, owner)},
    {STORE_REAL, MEMBER(store_job, ended_at)},
};
static const struct store_table job_table = STORE_TABLE(job_fields);

static const struct store_field round_fields[] = {
    {STORE_BLOB, MEMBER(store_round, job)},
    {STORE_UNSIGNED, MEMBER(store_round, round)},
    {STORE_ROUND_OUTCOME, MEMBER(store_round, state)},
    {STORE_BLOB, MEMBER(store_round, base)},
    {STORE_BLOB, MEMBER(store_round, model)},
    {STORE_BLOB, MEMBER(store_round, optimizer_state)},
    {STORE_UNSIGNED, MEMBER(store_round, reports)},
    {STORE_UNSIGNED, MEMBER(store_round, invited)},
    {STORE_UNSIGNED, MEMBER(store_round, aborted)},
    {STORE_UNSIGNED, MEMBER(store_round, reopened)},
    {STORE_UNSIGNED, MEMBER(store_round, goal)},
    {STORE_UNSIGNED, MEMBER(store_round, examples)},
    {STORE_UNSIGNED, MEMBER(store_round, bytes_up)},
    {STORE_UNSIGNED, MEMBER(store_round, bytes_down)},
    {STORE_REAL, MEMBER(store_round, loss)},
    {STORE_REAL, MEMBER(store_round, accuracy)},
    {STORE_REAL, MEMBER(store_round, norm)},
    {STORE_BOOL, MEMBER(store_round, evaluate.known)},
    {STORE_UNSIGNED, MEMBER(store_round, evaluate.examples)},
    {STORE_REAL, MEMBER(store_round, evaluate.loss)},
    {STORE_REAL, MEMBER(store_round, evaluate.accuracy)},
    {STORE_REAL, MEMBER(store_round, eval_own)},
    {STORE_UNSIGNED, MEMBER(store_round, measured)},
    {STORE_REAL, MEMBER(store_round, opened_at)},
    {STORE_REAL, MEMBER(store_round, closed_at)},
    {STORE_TEXT, MEMBER(store_round, reason)},
};
static const struct store_table round_table = STORE_TABLE(round_fields);

static const struct store_field accept_fields[] = {
    {STORE_BLOB, MEMBER(store_accept, job)},
    {STORE_UNSIGNED, MEMBER(store_accept, round)},
    {STORE_BLOB, MEMBER(store_accept, device)},
    {STORE_BLOB, MEMBER(store_accept, task)},
    {STORE_BLOB, MEMBER(store_accept, manifest)},
    {STORE_BLOB, MEMBER(store_accept, receipt)},
    {STORE_LONG_TEXT, offsetof(struct store_accept, report), 0},
    {STORE_UNSIGNED, MEMBER(store_accept, body_bytes)},
    {STORE_REAL, MEMBER(store_accept, accepted_at)},
    {STORE_UNSIGNED, MEMBER(store_accept, folded)},
};
static const struct store_table accept_table = STORE_TABLE(accept_fields);

#define DEVICE STORE_SUM_DEVICE
#define TOKEN STORE_SUM_TOKEN ", last_used, last_address"
#define JOB "id, document, state, reason, created_at, owner, ended_at"
#define ROUND \
	"job, round, state, base, model, optimizer_state, reports, invited, aborted, reopened, " \
	"goal, examples, bytes_up, bytes_down, loss, accuracy, norm, eval_known, eval_examples, " \
	"eval_loss, eval_accuracy, eval_own, measured, opened_at, closed_at, reason"
#define ACCEPT STORE_SUM_ACCEPT

enum err
store_device_put(struct store_db *db, const struct store_device *d)
{
	/* Here and below: INSERT OR REPLACE would delete the old row, and with it what refers to it. */
	struct store_query q = store_query_begin(db,
	    "INSERT INTO device (" DEVICE
	    ") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT (id) DO UPDATE "
	    "SET spki = excluded.spki, name = excluded.name, role = excluded.role, "
	    "state = excluded.state, labels = excluded.labels, joined_at = excluded.joined_at, "
	    "previous = excluded.previous, ca_generation = excluded.ca_generation, "
	    "rotations_at = excluded.rotations_at, key_at = excluded.key_at, "
	    "restored_key_at = excluded.restored_key_at, claim = excluded.claim");

	store_query_row(&q, &device_table, d);
	return store_query_done(&q);
}

enum err
store_device_get(struct store_db *db, const uint8_t id[32], struct store_device *out)
{
	struct store_query q = store_query_begin(db,
	    "SELECT " DEVICE STORE_JUDGED("device", STORE_SUM_DEVICE) " FROM device WHERE id = ?");

	store_query_blob(&q, id, 32);
	return store_query_one(&q, &device_table, out);
}

enum err
store_device_each(
    struct store_db *db, enum err (*fn)(void *ctx, const struct store_device *d), void *ctx)
{
	struct store_query q = store_query_begin(db,
	    "SELECT " DEVICE STORE_JUDGED("device", STORE_SUM_DEVICE) " FROM device ORDER BY id");
	struct store_device d;

	while (store_query_next(&q, &device_table, &d))
		q.e = fn(ctx, &d);
	return store_query_end(&q);
}

enum err
store_token_put(struct store_db *db, const struct store_token *t)
{
	struct store_query q = store_query_begin(db,
	    "INSERT INTO token (" TOKEN
	    ") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT (id) DO UPDATE SET secret_hash "
	    "= excluded.secret_hash, role = excluded.role, labels = excluded.labels, uses = "
	    "excluded.uses, uses_left = excluded.uses_left, created_at = excluded.created_at, "
	    "expires_at = excluded.expires_at, revoked = excluded.revoked, access = "
	    "excluded.access, name = excluded.name, name_prefix = excluded.name_prefix, owner = "
	    "excluded.owner, suspended = excluded.suspended");

	store_query_row(&q, &token_table, t);
	return store_query_done(&q);
}

enum err
store_token_get(struct store_db *db, const uint8_t id[8], struct store_token *out)
{
	struct store_query q = store_query_begin(
	    db, "SELECT " TOKEN STORE_JUDGED("token", STORE_SUM_TOKEN) " FROM token WHERE id = ?");

	store_query_blob(&q, id, 8);
	return store_query_one(&q, &token_table, out);
}

enum err
store_token_each(struct store_db *db, uint64_t *after,
    enum err (*fn)(void *ctx, const struct store_token *t), void *ctx)
{
	struct store_query q = store_query_begin(db,
	    "SELECT " TOKEN ", rowid" STORE_JUDGED(
		"token", STORE_SUM_TOKEN) " FROM token WHERE rowid > ? ORDER BY rowid");
	struct token_row r;

	store_query_unsigned(&q, *after);
	while (store_query_next(&q, &token_row_table, &r)) {
		q.e = fn(ctx, &r.token);
		if (!q.e)
			*after = r.row;
	}
	return store_query_end(&q);
}

enum err
store_job_insert(struct store_db *db, const struct store_job *j)
{
	struct store_query q =
	    store_query_begin(db, "INSERT INTO job (" JOB ") VALUES (?,?,?,?,?,?,?)");

	store_query_row(&q, &job_table, j);
	return store_query_done(&q);
}

/* The bytes of s that fit into max, ending between UTF-8 characters. */
static size_t
cut(const char *s, size_t max)
{
	size_t n = strnlen(s, max + 1);

	if (n <= max)
		return n;
	while (n > 0 && ((unsigned char)s[n - 1] & 0xc0) == 0x80)
		n--;
	return n > 0 ? n - 1 : 0;
}

enum err
store_job_set_state(
    struct store_db *db, const uint8_t id[16], enum job_state state, const char *reason, double at)
{
	static const struct store_field field = {STORE_REAL, 0, 0};
	struct store_query q = store_query_begin(db,
	    "UPDATE job SET state = ?1, reason = ?2, ended_at = CASE WHEN ?1 IN ('done', "
	    "'stopped') THEN ?3 END WHERE id = ?4");

	reason = reason ? reason : "";
	store_query_word(&q, states_job_name(state));
	store_query_text(
	    &q, reason, cut(reason, sizeof(((struct store_job *)0)->reason) - 1), SIZE_MAX);
	store_query_row(&q, &(struct store_table){1, &field}, &at);
	store_query_blob(&q, id, 16);
	enum err e = store_query_done(&q);
	return !e && sqlite3_changes(db->sql) == 0 ? ERR_NOTFOUND : e;
}

enum err
store_job_get(struct store_db *db, const uint8_t id[16], struct store_job *out)
{
	struct store_query q = store_query_begin(
	    db, "SELECT " JOB STORE_JUDGED("job", STORE_SUM_JOB) " FROM job WHERE id = ?");

	store_query_blob(&q, id, 16);
	return store_query_one_owned(&q, &job_table, out, &out->document, &out->document_len);
}

enum err
store_job_each(struct store_db *db, enum err (*fn)(void *ctx, const struct store_job *j), void *ctx)
{
	struct store_query q = store_query_begin(
	    db, "SELECT " JOB STORE_JUDGED("job", STORE_SUM_JOB) " FROM job ORDER BY rowid");
	struct store_job j;

	while (store_query_next(&q, &job_table, &j))
		q.e = fn(ctx, &j);
	return store_query_end(&q);
}

enum err
store_round_put(struct store_db *db, const struct store_round *r)
{
	struct store_query q = store_query_begin(db,
	    "INSERT INTO round (" ROUND
	    ") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT (job, "
	    "round) DO UPDATE SET state = excluded.state, base = excluded.base, model = "
	    "excluded.model, optimizer_state = excluded.optimizer_state, reports = "
	    "excluded.reports, invited = excluded.invited, aborted = excluded.aborted, reopened "
	    "= excluded.reopened, goal = excluded.goal, examples = excluded.examples, bytes_up = "
	    "excluded.bytes_up, bytes_down = excluded.bytes_down, loss = excluded.loss, accuracy "
	    "= excluded.accuracy, norm = excluded.norm, eval_known = excluded.eval_known, "
	    "eval_examples = excluded.eval_examples, eval_loss = excluded.eval_loss, "
	    "eval_accuracy = excluded.eval_accuracy, eval_own = excluded.eval_own, measured = "
	    "excluded.measured, opened_at = excluded.opened_at, closed_at = excluded.closed_at, "
	    "reason = excluded.reason");

	store_query_row(&q, &round_table, r);
	return store_query_done(&q);
}

enum err
store_round_get(struct store_db *db, const uint8_t job[16], uint64_t round, struct store_round *out)
{
	struct store_query q = store_query_begin(db,
	    "SELECT " ROUND STORE_JUDGED(
		"round", STORE_SUM_ROUND) " FROM round WHERE job = ? AND round = ?");

	store_query_blob(&q, job, 16);
	store_query_unsigned(&q, round);
	return store_query_one(&q, &round_table, out);
}

enum err
store_round_last(struct store_db *db, const uint8_t job[16], struct store_round *out)
{
	struct store_query q = store_query_begin(db,
	    "SELECT " ROUND STORE_JUDGED(
		"round", STORE_SUM_ROUND) " FROM round WHERE job = ? ORDER BY round DESC LIMIT 1");

	store_query_blob(&q, job, 16);
	return store_query_one(&q, &round_table, out);
}

enum err
store_round_measured(struct store_db *db, const uint8_t job[16], struct store_round *out)
{
	struct store_query q = store_query_begin(db,
	    "SELECT " ROUND STORE_JUDGED(
		"round", STORE_SUM_ROUND) " FROM round WHERE job = ? AND eval_known ORDER BY round "
					  "DESC LIMIT 1");

	store_query_blob(&q, job, 16);
	return store_query_one(&q, &round_table, out);
}

enum err
store_round_each(struct store_db *db, const uint8_t job[16], uint64_t from, uint64_t limit,
    enum err (*fn)(void *ctx, const struct store_round *r), void *ctx)
{
	struct store_query q = store_query_begin(db,
	    "SELECT " ROUND STORE_JUDGED("round",
		STORE_SUM_ROUND) " FROM round WHERE job = ? AND round >= ? ORDER BY round LIMIT ?");
	struct store_round r;

	store_query_blob(&q, job, 16);
	store_query_unsigned(&q, from);
	store_query_unsigned(&q, limit < INT64_MAX ? limit : INT64_MAX);
	while (store_query_next(&q, &round_table, &r))
		q.e = fn(ctx, &r);
	return store_query_end(&q);
}

enum err
store_round_back(struct store_db *db, const uint8_t job[16], uint64_t limit,
    enum err (*fn)(void *ctx, const struct store_round *r), void *ctx)
{
	struct store_query q = store_query_begin(db,
	    "SELECT " ROUND STORE_JUDGED(
		"round", STORE_SUM_ROUND) " FROM round WHERE job = ? ORDER BY round DESC LIMIT ?");
	struct store_round r;

	store_query_blob(&q, job, 16);
	store_query_unsigned(&q, limit);
	while (store_query_next(&q, &round_table, &r))
		q.e = fn(ctx, &r);
	return store_query_end(&q);
}

enum err
store_round_reports(
    struct store_db *db, const uint8_t job[16], uint64_t from, uint64_t to, uint64_t *out)
{
	static const struct store_field field = {STORE_UNSIGNED, 0, 0};
	struct store_query q = store_query_begin(db,
	    "SELECT coalesce(sum(reports), 0) FROM round WHERE job = ? AND round BETWEEN ? AND ? "
	    "AND state = 'committed'");

	store_query_blob(&q, job, 16);
	store_query_unsigned(&q, from);
	store_query_unsigned(&q, to);
	return store_query_one(&q, &(struct store_table){1, &field}, out);
}

enum err
store_accept_insert(struct store_db *db, const struct store_accept *a)
{
	struct store_query q =
	    store_query_begin(db, "INSERT INTO accept (" ACCEPT ") VALUES (?,?,?,?,?,?,?,?,?,?)");

	store_query_row(&q, &accept_table, a);
	return store_query_done(&q);
}

enum err
store_accept_get(struct store_db *db, const uint8_t job[16], uint64_t round,
    const uint8_t device[32], struct store_accept *out)
{
	struct store_query q = store_query_begin(db,
	    "SELECT " ACCEPT STORE_JUDGED("accept",
		STORE_SUM_ACCEPT) " FROM accept WHERE job = ? AND round = ? AND device = ?");

	store_query_blob(&q, job, 16);
	store_query_unsigned(&q, round);
	store_query_blob(&q, device, 32);
	return store_query_one_owned(&q, &accept_table, out, &out->report, NULL);
}

static enum err
each_accept(
    struct store_query *q, enum err (*fn)(void *ctx, const struct store_accept *a), void *ctx)
{
	struct store_accept a;

	while (store_query_next(q, &accept_table, &a))
		q->e = fn(ctx, &a);
	return store_query_end(q);
}

/* Those that were folded into a round, behind the one of a device and round. */
static enum err
each_folded(struct store_db *db, const struct store_accept *last, size_t device_len,
    enum err (*fn)(void *ctx, const struct store_accept *a), void *ctx)
{
	struct store_query q = store_query_begin(db,
	    "SELECT " ACCEPT STORE_JUDGED(
		"accept", STORE_SUM_ACCEPT) " FROM accept WHERE job = ? AND folded = ? AND "
					    "(device, round) > (?, ?) "
					    "ORDER BY device, round");

	store_query_blob(&q, last->job, 16);
	store_query_unsigned(&q, last->folded);
	store_query_blob(&q, last->device, device_len);
	store_query_unsigned(&q, last->round);
	return each_accept(&q, fn, ctx);
}

enum err
store_accept_each(struct store_db *db, const uint8_t job[16], uint64_t round,
    enum err (*fn)(void *ctx, const struct store_accept *a), void *ctx)
{
	struct store_accept first = {.folded = round};

	memcpy(first.job, job, 16);
	return each_folded(db, &first, 0, fn, ctx); /* nothing comes before it */
}

enum err
store_accept_answers(struct store_db *db, const uint8_t job[16], uint64_t round,
    enum err (*fn)(void *ctx, const struct store_accept *a), void *ctx)
{
	struct store_query q = store_query_begin(db,
	    "SELECT " ACCEPT STORE_JUDGED("accept",
		STORE_SUM_ACCEPT) " FROM accept WHERE job = ? AND round = ? ORDER BY device");

	store_query_blob(&q, job, 16);
	store_query_unsigned(&q, round);
	return each_accept(&q, fn, ctx);
}

enum err
store_accept_waiting(struct store_db *db, const uint8_t job[16], uint64_t folded,
    enum err (*fn)(void *ctx, const struct store_accept *a), void *ctx)
{
	struct store_query q = store_query_begin(db,
	    "SELECT " ACCEPT STORE_JUDGED(
		"accept", STORE_SUM_ACCEPT) " FROM accept WHERE job = ? AND folded >= ? "
					    "ORDER BY folded, device, round");

	store_query_blob(&q, job, 16);
	store_query_unsigned(&q, folded);
	return each_accept(&q, fn, ctx);
}

enum err
store_accept_after(struct store_db *db, const struct store_accept *last,
    enum err (*fn)(void *ctx, const struct store_accept *a), void *ctx)
{
	return each_folded(db, last, 32, fn, ctx);
}

static const struct store_field count_fields[] = {{STORE_UNSIGNED, 0, 0}};
static const struct store_table count_table = STORE_TABLE(count_fields);

enum err
store_accept_count(struct store_db *db, const uint8_t device[32], uint64_t *out)
{
	struct store_query q =
	    store_query_begin(db, "SELECT count(*) FROM accept WHERE device = ?");

	store_query_blob(&q, device, 32);
	return store_query_one(&q, &count_table, out);
}

enum err
store_round_last_measured(struct store_db *db, const uint8_t job[16], uint64_t *out)
{
	struct store_query q =
	    store_query_begin(db, "SELECT coalesce(max(measured), 0) FROM round WHERE job = ?");

	store_query_blob(&q, job, 16);
	return store_query_one(&q, &count_table, out);
}

enum err
store_accept_drop(
    struct store_db *db, const uint8_t job[16], uint64_t round, const uint8_t device[32])
{
	struct store_query q =
	    store_query_begin(db, "DELETE FROM accept WHERE job = ? AND round = ? AND device = ?");

	store_query_blob(&q, job, 16);
	store_query_unsigned(&q, round);
	store_query_blob(&q, device, 32);
	return store_query_done(&q);
}

struct store_last {
	uint8_t device[32];
	uint64_t round;
};
static const struct store_field last_fields[] = {
    {STORE_BLOB, MEMBER(store_last, device)}, {STORE_UNSIGNED, MEMBER(store_last, round)}};
static const struct store_table last_table = STORE_TABLE(last_fields);

enum err
store_accept_last(struct store_db *db, const uint8_t job[16],
    enum err (*fn)(void *ctx, const uint8_t device[32], uint64_t round), void *ctx)
{
	struct store_query q = store_query_begin(db,
	    "SELECT accept.device, max(accept.folded) FROM accept JOIN round ON round.job = "
	    "accept.job AND round.round = accept.folded AND round.state = 'committed' WHERE "
	    "accept.job = ? GROUP BY accept.device ORDER BY accept.device");
	struct store_last last;

	store_query_blob(&q, job, 16);
	while (store_query_next(&q, &last_table, &last))
		q.e = fn(ctx, last.device, last.round);
	return store_query_end(&q);
}

static const struct store_field meta_fields[] = {{STORE_ANY64, 0, 0}};
static const struct store_table meta_table = STORE_TABLE(meta_fields);

enum err
store_meta_get(struct store_db *db, const char *key, uint64_t *out)
{
	struct store_query q = store_query_begin(
	    db, "SELECT value" STORE_JUDGED("meta", "key, value") " FROM meta WHERE key = ?");

	store_query_text(&q, key, strlen(key), META_KEY_MAX);
	return store_query_one(&q, &meta_table, out);
}

enum err
store_meta_put(struct store_db *db, const char *key, uint64_t value)
{
	struct store_query q = store_query_begin(db,
	    "INSERT INTO meta (key, value) VALUES (?,?) ON CONFLICT (key) DO UPDATE SET "
	    "value = excluded.value");

	store_query_text(&q, key, strlen(key), META_KEY_MAX);
	store_query_row(&q, &meta_table, &value);
	return store_query_done(&q);
}
