/* stages: gcc clang openssl address */
#include "past_rows.h"
#include "store_fixture.h"
#include "store_inside.h"

/* --- each kind of row, there and back --- */

static void
test_devices(void **state)
{
	struct fixture *f = *state;
	struct tags t = {.n = 0};

	for (int i = 0; i < 4; i++) {
		struct store_device d = device((uint8_t)(9 - i));
		write_ok(f, put_device, &d);
	}
	struct store_device d = device(8), got = {.id = {0}};
	memset(d.labels, 'x', sizeof(d.labels) - 1);
	memset(d.name, 'n', sizeof(d.name) - 1);
	d.state = DEVICE_SUSPENDED;
	strcpy(d.role, "admin");
	d.spki[90] = 77;
	d.joined_at = 1e9 + 0.125;
	write_ok(f, put_device, &d);
	reopen(f);
	memcpy(got.id, d.id, 32);
	read_ok(f, get_device, &got);
	assert_memory_equal(got.spki, d.spki, sizeof(d.spki));
	assert_string_equal(got.name, d.name);
	assert_string_equal(got.role, d.role);
	assert_int_equal(got.state, d.state);
	assert_string_equal(got.labels, d.labels);
	assert_true(got.joined_at == d.joined_at);
	memset(got.id, 1, 32);
	assert_int_equal(store_read(f->s, get_device, &got, &f->why), ERR_NOTFOUND);
	/* By id, in whatever order they came, so that a start only appends. */
	read_ok(f, each_device, &t);
	assert_int_equal(t.n, 4);
	assert_memory_equal(t.tag, "\x06\x07\x08\x09", 4);
	t = (struct tags){.stop = ERR_STATE};
	assert_int_equal(store_read(f->s, each_device, &t, &f->why), ERR_STATE);
	assert_int_equal(t.n, 3);
	t = (struct tags){.stop = ERR_NOTFOUND};
	assert_int_equal(store_read(f->s, each_device, &t, &f->why), ERR_NOTFOUND);
	/* A text without its end does not get in. */
	memset(d.name, 'n', sizeof(d.name));
	assert_int_equal(store_write(f->s, put_device, &d, &f->why), ERR_LIMIT);
}

static enum err
collect_token(void *ctx, const struct store_token *t)
{
	struct tags *tags = ctx;

	tags->tag[tags->n++] = t->id[0];
	return ERR_OK;
}

struct one_token {
	uint8_t tag;
	bool taken;
};

static enum err
take_one(void *ctx, const struct store_token *t)
{
	struct one_token *one = ctx;

	if (one->taken)
		return ERR_CLOSED;
	*one = (struct one_token){t->id[0], true};
	return ERR_OK;
}

static enum err
tokens(struct store_db *db, void *arg, struct why *why)
{
	struct store_token t = {.id = "1234567",
			       .role = "device",
			       .labels = "{}",
			       .uses = 5,
			       .uses_left = 5,
			       .created_at = 10,
			       .expires_at = 20},
			   got;
	struct store_device d = device(7);
	uint8_t spki[91] = {1}, found[32];
	struct tags tags = {.n = 0};

	(void)arg;
	memset(t.secret_hash, 0xee, 32);
	CHECK(store_token_put(db, &t) == ERR_OK);
	CHECK(store_device_put(db, &d) == ERR_OK);
	CHECK(store_join_get(db, t.id, spki, found) == ERR_NOTFOUND);
	CHECK(store_join_put(db, t.id, spki, d.id) == ERR_OK);
	CHECK(store_join_put(db, t.id, spki, d.id) == ERR_EXISTS);
	/* Replacing a token keeps who joined with it. */
	t.uses_left = 4;
	t.revoked = t.suspended = true;
	CHECK(store_token_put(db, &t) == ERR_OK);
	CHECK(store_join_get(db, t.id, spki, found) == ERR_OK);
	CHECK(memcmp(found, d.id, 32) == 0);
	spki[90] = 1;
	CHECK(store_join_get(db, t.id, spki, found) == ERR_NOTFOUND);
	d.id[0]++;
	CHECK(store_join_put(db, t.id, spki, d.id) == ERR_NOTFOUND);
	CHECK(store_token_get(db, t.id, &got) == ERR_OK);
	CHECK(memcmp(got.secret_hash, t.secret_hash, 32) == 0);
	CHECK(got.uses == 5);
	CHECK(got.uses_left == 4);
	CHECK(got.revoked && got.suspended && got.created_at == 10 && got.expires_at == 20);
	t.id[0] = 'z';
	CHECK(store_token_get(db, t.id, &got) == ERR_NOTFOUND);
	t.uses = UINT64_MAX;
	CHECK(store_token_put(db, &t) == ERR_LIMIT);
	t.uses = INT64_MAX;
	CHECK(store_token_put(db, &t) == ERR_OK);
	CHECK(store_token_get(db, t.id, &got) == ERR_OK);
	CHECK(got.uses == INT64_MAX && got.uses_left == 4);
	CHECK(store_token_each(db, &(uint64_t){0}, collect_token, &tags) == ERR_OK);
	CHECK(tags.n == 2);
	/* One at a time they are the same: what is not taken comes again. */
	uint64_t after = 0;
	for (int i = 0; i < 2; i++) {
		struct one_token one = {.taken = false};
		CHECK(store_token_each(db, &after, take_one, &one) == (i ? ERR_OK : ERR_CLOSED));
		CHECK(one.taken && one.tag == tags.tag[i]);
	}
	CHECK(
	    store_token_each(db, &after, take_one, &(struct one_token){.taken = false}) == ERR_OK);
	return ERR_OK;
}

static void
test_tokens(void **state)
{
	write_ok(*state, tokens, NULL);
}

static enum err
collect_job(void *ctx, const struct store_job *j)
{
	struct tags *t = ctx;

	if (j->document_len != 12 || strcmp(j->document, "{\"name\":\"j\"}") != 0)
		return ERR_CORRUPT;
	t->tag[t->n++] = j->id[0];
	return ERR_OK;
}

static enum err
jobs(struct store_db *db, void *arg, struct why *why)
{
	static const double times[] = {3, 1, 2, 1};
	struct store_job got, j;
	struct tags t = {.n = 0};
	char reason[2 * STORE_REASON_MAX];

	(void)arg;
	for (uint8_t i = 0; i < 4; i++) {
		j = job(i, times[i]);
		CHECK(store_job_insert(db, &j) == ERR_OK);
	}
	CHECK(store_job_insert(db, &j) == ERR_EXISTS);
	CHECK(store_job_each(db, collect_job, &t) == ERR_OK);
	CHECK(t.n == 4);
	CHECK(memcmp(t.tag, "\x00\x01\x02\x03", 4) == 0);
	/* Cut to fit, not inside the two bytes of a character. */
	memset(reason, 'r', sizeof(reason));
	reason[sizeof(reason) - 1] = '\0';
	memcpy(reason + STORE_REASON_MAX - 2, "\xc3\xa9", 2);
	CHECK(store_job_set_state(db, j.id, JOB_STOPPED, reason, 5) == ERR_OK);
	CHECK(store_job_get(db, j.id, &got) == ERR_OK);
	CHECK(got.state == JOB_STOPPED);
	CHECK(strlen(got.reason) == STORE_REASON_MAX - 2);
	CHECK(got.document_len == j.document_len);
	CHECK(strcmp(got.document, j.document) == 0);
	free(got.document);
	memset(reason, 'r', sizeof(reason) - 1);
	CHECK(store_job_set_state(db, j.id, JOB_DONE, reason, NAN) == ERR_OK);
	CHECK(store_job_get(db, j.id, &got) == ERR_OK);
	CHECK(strlen(got.reason) == STORE_REASON_MAX - 1);
	free(got.document);
	CHECK(store_job_set_state(db, j.id, JOB_RUNNING, NULL, 6) == ERR_OK);
	CHECK(store_job_set_state(db, j.id, JOB_UNKNOWN, "", 0) == ERR_INVALID);
	memset(j.id, 99, 16);
	CHECK(store_job_set_state(db, j.id, JOB_DONE, "", 0) == ERR_NOTFOUND);
	got.document = reason;
	CHECK(store_job_get(db, j.id, &got) == ERR_NOTFOUND);
	CHECK(!got.document);
	return ERR_OK;
}

static void
test_jobs(void **state)
{
	write_ok(*state, jobs, NULL);
}

static enum err
collect_round(void *ctx, const struct store_round *r)
{
	struct tags *t = ctx;

	t->tag[t->n++] = (uint8_t)r->round;
	return ERR_OK;
}

static enum err
rounds(struct store_db *db, void *arg, struct why *why)
{
	struct store_job j = job(1, 1);
	struct store_round r, got;
	struct tags t = {.n = 0};

	(void)arg;
	r = make_round(1, 1);
	CHECK(store_round_put(db, &r) == ERR_NOTFOUND); /* no such job */
	CHECK(store_job_insert(db, &j) == ERR_OK);
	CHECK(store_round_last(db, r.job, &got) == ERR_NOTFOUND);
	for (uint64_t i = 12; i >= 1; i--) {
		r = make_round(1, i);
		CHECK(store_round_put(db, &r) == ERR_OK);
	}
	CHECK(store_round_get(db, r.job, 1, &got) == ERR_OK);
	CHECK(got.state == OUTCOME_OPEN);
	CHECK(isnan(got.loss) && isnan(got.accuracy) && isnan(got.norm) && !got.evaluate.known);
	r.state = OUTCOME_COMMITTED;
	strcpy(r.reason, "goal");
	memset(r.model, 1, 32);
	memset(r.optimizer_state, 2, 32);
	r.reports = 1, r.invited = 2, r.aborted = 3, r.reopened = 4, r.goal = 5, r.examples = 6;
	r.bytes_up = 1ull << 40, r.bytes_down = 8, r.loss = 0.1, r.accuracy = 0.2,
	r.norm = INFINITY;
	r.evaluate = (struct store_metric){true, 10, 0.3, NAN};
	r.closed_at = 200.5;
	CHECK(store_round_put(db, &r) == ERR_OK);
	CHECK(store_round_get(db, r.job, 1, &got) == ERR_OK);
	CHECK(isnan(got.evaluate.accuracy));
	got.evaluate.accuracy = r.evaluate.accuracy = 0;
	CHECK(got.state == r.state);
	CHECK(strcmp(got.reason, r.reason) == 0);
	CHECK(memcmp(got.model, r.model, 32) == 0);
	CHECK(memcmp(got.optimizer_state, r.optimizer_state, 32) == 0);
	CHECK(memcmp(&got.reports, &r.reports,
		  offsetof(struct store_round, evaluate) - offsetof(struct store_round, reports)) ==
	    0);
	CHECK(got.evaluate.known && got.evaluate.examples == 10 && got.evaluate.loss == 0.3);
	CHECK(got.opened_at == 100.25 && got.closed_at == 200.5);
	CHECK(store_round_last(db, r.job, &got) == ERR_OK);
	CHECK(got.round == 12);
	CHECK(store_round_each(db, r.job, 9, 3, collect_round, &t) == ERR_OK);
	CHECK(t.n == 3);
	CHECK(memcmp(t.tag, "\x09\x0a\x0b", 3) == 0);
	CHECK(store_round_each(db, r.job, 11, UINT64_MAX, collect_round, &t) == ERR_OK);
	CHECK(t.n == 5);
	CHECK(store_round_get(db, r.job, 13, &got) == ERR_NOTFOUND);
	return ERR_OK;
}

static void
test_rounds(void **state)
{
	write_ok(*state, rounds, NULL);
}

static enum err
collect_accept(void *ctx, const struct store_accept *a)
{
	struct tags *t = ctx;

	t->tag[t->n++] = a->device[0];
	if (a->device[0] == 2)
		return a->report && strcmp(a->report, "{\"loss\":1}") == 0 ? ERR_OK : ERR_CORRUPT;
	return a->report ? ERR_CORRUPT : ERR_OK;
}

static enum err
collect_folded(void *ctx, const struct store_accept *a)
{
	struct tags *t = ctx;

	t->tag[t->n++] = a->device[0];
	return ERR_OK;
}

#define REPORT "{\"loss\":1}"

/* Device 2's delta of round 1, which stands in a. */
static enum err
find_accept(struct store_db *db, struct store_accept a, struct why *why)
{
	struct store_accept got;
	uint64_t count;

	CHECK(store_accept_get(db, a.job, 1, a.device, &got) == ERR_OK);
	CHECK(strcmp(got.report, REPORT) == 0);
	free(got.report);
	CHECK(memcmp(got.manifest, a.manifest, sizeof(a.manifest)) == 0);
	CHECK(memcmp(got.receipt, a.receipt, sizeof(a.receipt)) == 0);
	CHECK(memcmp(got.task, a.task, sizeof(a.task)) == 0);
	CHECK(got.body_bytes == 12345 && got.accepted_at == 7.0);
	CHECK(store_accept_get(db, a.job, 3, a.device, &got) == ERR_NOTFOUND);
	CHECK(store_accept_count(db, a.device, &count) == ERR_OK);
	CHECK(count == 2);
	memset(a.device, 77, 32);
	CHECK(store_accept_count(db, a.device, &count) == ERR_OK);
	CHECK(count == 0);
	return ERR_OK;
}

static enum err
accepts(struct store_db *db, void *arg, struct why *why)
{
	struct store_job j = job(1, 1);
	struct store_round r = make_round(1, 1);
	struct store_accept a;
	struct store_device d;
	struct tags t = {.n = 0};
	static const uint8_t order[] = {200, 2, 100, 0};
	char report[] = REPORT;

	(void)arg;
	a = make_accept(1, 1, 2);
	CHECK(store_accept_insert(db, &a) == ERR_NOTFOUND);
	CHECK(store_job_insert(db, &j) == ERR_OK);
	CHECK(store_round_put(db, &r) == ERR_OK);
	r.round = 2;
	CHECK(store_round_put(db, &r) == ERR_OK);
	for (size_t i = 0; i < sizeof(order); i++) {
		d = device(order[i]);
		CHECK(store_device_put(db, &d) == ERR_OK);
		a = make_accept(1, 1, order[i]);
		a.report = order[i] == 2 ? report : NULL;
		CHECK(store_accept_insert(db, &a) == ERR_OK);
		CHECK(store_accept_insert(db, &a) == ERR_EXISTS);
	}
	/* A delta of round 1 that goes into round 2, behind that device's own of round 2. */
	a = make_accept(1, 2, 2);
	CHECK(store_accept_insert(db, &a) == ERR_OK);
	a = make_accept(1, 1, 3);
	d = device(3);
	CHECK(store_device_put(db, &d) == ERR_OK);
	a.folded = 2;
	CHECK(store_accept_insert(db, &a) == ERR_OK);
	CHECK(store_accept_waiting(db, a.job, 2, collect_folded, &t) == ERR_OK);
	CHECK(t.n == 2 && memcmp(t.tag, "\x02\x03", 2) == 0);
	t = (struct tags){.n = 0};
	a = make_accept(1, 2, 2);
	/* A round already reported to may be written again: its rows stay. */
	r.round = 1;
	CHECK(store_round_put(db, &r) == ERR_OK);
	CHECK(store_accept_each(db, a.job, 1, collect_accept, &t) == ERR_OK);
	CHECK(t.n == 4);
	CHECK(memcmp(t.tag, "\x00\x02\x64\xc8", 4) == 0);
	a.round = a.folded = 1;
	t = (struct tags){.n = 0};
	CHECK(store_accept_after(db, &a, collect_accept, &t) == ERR_OK);
	CHECK(t.n == 2 && memcmp(t.tag, "\x64\xc8", 2) == 0);
	return find_accept(db, a, why);
}

static void
test_accepts(void **state)
{
	write_ok(*state, accepts, NULL);
}

/* Of the last one nobody knows that it is in use but who says so. The times are of a clock that went back and forth. */
static enum err
put_keys(struct store_db *db, const uint8_t device_id[32], uint8_t from, uint8_t to)
{
	enum err e = ERR_OK;
	uint8_t key[32];

	for (uint8_t tag = from; tag <= to && !e; tag++) {
		memset(key, tag, sizeof(key));
		e = store_key_put(db, key, device_id);
		if (!e && tag != 13)
			e = store_key_retire(db, key, tag == 11 ? 4e9 : 1);
	}
	return e;
}

/* One key was retired before the first manifest on record, one after it, two are in use. */
static enum err
keys(struct store_db *db, void *arg, struct why *why)
{
	struct store_job j = job(1, 1);
	struct store_round r = make_round(1, 1);
	struct store_device d = device(2);
	struct store_accept a = make_accept(1, 1, 2);
	struct store_pruning p = {.count = 0};
	uint8_t owner[32];

	(void)arg;
	CHECK(store_device_put(db, &d) == ERR_OK && store_job_insert(db, &j) == ERR_OK);
	CHECK(store_round_put(db, &r) == ERR_OK && put_keys(db, d.id, 11, 11) == ERR_OK);
	CHECK(store_accept_insert(db, &a) == ERR_OK && put_keys(db, d.id, 12, 14) == ERR_OK);
	memcpy(p.device, d.id, 32);
	memset(p.previous, 13, 32);
	memset(p.present, 14, 32);
	CHECK(store_key_prune(db, &p) == ERR_OK && p.count == 1 && p.gone[0][0] == 11);
	CHECK(store_key_prune(db, &p) == ERR_OK && p.count == 0);
	CHECK(store_delete_reports(db, a.job, 1, 1) == ERR_OK);
	CHECK(store_key_prune(db, &p) == ERR_OK && p.count == 1 && p.gone[0][0] == 12);
	CHECK(store_key_get(db, p.gone[0], owner) == ERR_NOTFOUND);
	CHECK(store_key_get(db, p.present, owner) == ERR_OK);
	CHECK(store_key_get(db, p.previous, owner) == ERR_OK);
	return ERR_OK;
}

static void
test_keys(void **state)
{
	write_ok(*state, keys, NULL);
}

static enum err
collect_model(void *ctx, const struct store_model *m)
{
	struct tags *t = ctx;

	t->tag[t->n++] = m->id[0];
	return ERR_OK;
}

static enum err
models_and_meta(struct store_db *db, void *arg, struct why *why)
{
	struct store_model m = {.id = {1},
			       .bytes = 1ull << 33,
			       .job = {2},
			       .round = 3,
			       .created_at = 4},
			   got;
	struct tags t = {.n = 0};
	uint64_t v;

	(void)arg;
	CHECK(store_model_put(db, &m) == ERR_OK);
	m.round = 9;
	CHECK(store_model_put(db, &m) == ERR_OK);
	CHECK(store_model_get(db, m.id, &got) == ERR_OK);
	CHECK(got.round == 3 && got.bytes == 1ull << 33 && got.job[0] == 2 && got.created_at == 4);
	m.id[0] = 0;
	CHECK(store_model_put(db, &m) == ERR_OK);
	CHECK(store_model_each(db, collect_model, &t) == ERR_OK);
	CHECK(memcmp(t.tag, "\x01\x00", 2) == 0);
	CHECK(store_model_delete(db, m.id) == ERR_OK);
	CHECK(store_model_delete(db, m.id) == ERR_NOTFOUND);
	CHECK(store_model_get(db, m.id, &got) == ERR_NOTFOUND);
	CHECK(store_meta_get(db, "incarnation", &v) == ERR_NOTFOUND);
	CHECK(store_meta_put(db, "incarnation", 1) == ERR_OK);
	CHECK(store_meta_put(db, "incarnation", UINT64_MAX) == ERR_OK);
	CHECK(store_meta_get(db, "incarnation", &v) == ERR_OK);
	CHECK(v == UINT64_MAX);
	return ERR_OK;
}

static void
test_models_and_meta(void **state)
{
	write_ok(*state, models_and_meta, NULL);
}

static enum err
nested(void *ctx, const struct store_device *d)
{
	struct tags t = {.n = 0};

	(void)d;
	assert_int_equal(store_device_each(ctx, collect_device, &t), ERR_STATE);
	assert_int_equal(t.n, 0);
	return ERR_OK;
}

static enum err
each_in_each(struct store_db *db, void *arg, struct why *why)
{
	(void)arg, (void)why;
	return store_device_each(db, nested, db);
}

static void
test_each_in_each(void **state)
{
	struct store_device d = device(1);

	write_ok(*state, put_device, &d);
	read_ok(*state, each_in_each, NULL);
}

/* A statement is prepared when it is first asked for, kept while others come between, and found again by its text's address. */
static enum err
prepare_once(struct store_db *db, void *arg, struct why *why)
{
	static const char texts[][16] = {"SELECT 1", "SELECT 2", "SELECT 3", "SELECT 4", "SELECT 5",
	    "SELECT 6", "SELECT 7", "SELECT 8", "SELECT 9", "SELECT 10", "SELECT 11", "SELECT 12",
	    "SELECT 13", "SELECT 14", "SELECT 15", "SELECT 16", "SELECT 17", "SELECT 18"};
	const size_t n = sizeof(texts) / sizeof(*texts), before = db->statement_count;
	sqlite3_stmt *made[sizeof(texts) / sizeof(*texts)];

	(void)arg;
	for (size_t round = 0; round < 2; round++)
		for (size_t i = 0; i < n; i++) {
			/* From both ends, so that they are inserted everywhere. */
			size_t at = i % 2 ? n - 1 - i / 2 : i / 2;
			struct store_query q = store_query_begin(db, texts[at]);
			CHECK(!q.e && (round == 0 || q.st == made[at]));
			made[at] = q.st;
			CHECK(strcmp(sqlite3_sql(q.st), texts[at]) == 0);
			CHECK(store_query_done(&q) == ERR_OK);
		}
	CHECK(db->statement_count == before + n);
	struct store_query bad = store_query_begin(db, "SELECT");
	CHECK(bad.e && store_query_end(&bad) == bad.e);
	return ERR_OK;
}

static void
test_statements(void **state)
{
	read_ok(*state, prepare_once, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_STORE(test_devices),
	    WITH_STORE(test_tokens),
	    WITH_STORE(test_jobs),
	    WITH_STORE(test_rounds),
	    WITH_STORE(test_accepts),
	    WITH_STORE(test_keys),
	    WITH_STORE(test_models_and_meta),
	    WITH_STORE(test_each_in_each),
	    WITH_STORE(test_statements),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
