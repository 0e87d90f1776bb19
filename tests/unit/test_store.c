#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store.h"

struct fixture {
	char dir[64], path[80];
	struct store *s;
	struct why why;
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->dir, "/tmp/test_store.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/rivulet.db", f->dir);
	assert_int_equal(store_open(&f->s, f->path, &f->why), ERR_OK);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;
	char path[96];
	static const char *const suffixes[] = {"", "-wal", "-shm"};

	store_close(f->s);
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s%s", f->path, suffixes[i]);
		unlink(path);
	}
	rmdir(f->dir);
	free(f);
	return 0;
}

static void
reopen(struct fixture *f)
{
	store_close(f->s);
	f->s = NULL;
	assert_int_equal(store_open(&f->s, f->path, &f->why), ERR_OK);
}

/* Runs fn as one work and fails the test with its reason. */
static void
write_ok(struct fixture *f, store_work fn, void *arg)
{
	enum err e = store_write(f->s, fn, arg, &f->why);

	if (e)
		fail_msg("%s: %s", err_name(e), f->why.text);
}

static void
read_ok(struct fixture *f, store_work fn, void *arg)
{
	enum err e = store_read(f->s, fn, arg, &f->why);

	if (e)
		fail_msg("%s: %s", err_name(e), f->why.text);
}

/* The same from outside, for what the interface cannot do. */
static void
raw(const char *path, const char *sql)
{
	sqlite3 *db;
	char *text = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 5000);
	if (sqlite3_exec(db, sql, NULL, NULL, &text) != SQLITE_OK)
		fail_msg("%s: %s", sql, text);
	sqlite3_close(db);
}

static struct store_device
device(uint8_t tag)
{
	struct store_device d = {.role = "device",
	    .state = "active",
	    .labels = "{\"site\":\"north\"}",
	    .joined_at = 1.5};

	memset(d.id, tag, sizeof(d.id));
	memset(d.spki, tag + 1, sizeof(d.spki));
	snprintf(d.name, sizeof(d.name), "device %u", tag);
	return d;
}

static struct store_job
job(uint8_t tag, double created_at)
{
	static char document[] = "{\"name\":\"j\"}";
	struct store_job j = {.document = document,
	    .document_len = strlen(document),
	    .state = "running",
	    .created_at = created_at};

	memset(j.id, tag, sizeof(j.id));
	return j;
}

static struct store_round
make_round(uint8_t tag, uint64_t number)
{
	struct store_round r = {.round = number,
	    .state = "open",
	    .goal = 10,
	    .loss = NAN,
	    .accuracy = NAN,
	    .norm = NAN,
	    .opened_at = 100.25};

	memset(r.job, tag, sizeof(r.job));
	memset(r.base, 0xb5, sizeof(r.base));
	return r;
}

static struct store_accept
make_accept(uint8_t tag, uint64_t number, uint8_t device_tag)
{
	struct store_accept a = {.round = number, .body_bytes = 12345, .accepted_at = 7.0};

	memset(a.job, tag, sizeof(a.job));
	memset(a.device, device_tag, sizeof(a.device));
	memset(a.task, 3, sizeof(a.task));
	memset(a.manifest, 4, sizeof(a.manifest));
	memset(a.receipt, 5, sizeof(a.receipt));
	return a;
}

/* For works, which run on the store's thread: cmocka's asserts only work on the main one. */
#define CHECK(x) \
	do { \
		if (!(x)) \
			return err_set(why, ERR_STATE, "line %d: %s", __LINE__, #x); \
	} while (0)

/* --- each kind of row, there and back --- */

static enum err
put_device(struct store_db *db, void *arg, struct why *why)
{
	(void)why;
	return store_device_put(db, arg);
}

struct tags {
	uint8_t tag[64];
	size_t n;
	enum err stop; /* returned at the third row */
};

static enum err
collect_device(void *ctx, const struct store_device *d)
{
	struct tags *t = ctx;

	t->tag[t->n++] = d->id[0];
	return t->n == 3 ? t->stop : ERR_OK;
}

static enum err
each_device(struct store_db *db, void *arg, struct why *why)
{
	(void)why;
	return store_device_each(db, collect_device, arg);
}

static enum err
get_device(struct store_db *db, void *arg, struct why *why)
{
	struct store_device *d = arg;

	(void)why;
	return store_device_get(db, d->id, d);
}

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
	strcpy(d.state, "suspended");
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
	assert_string_equal(got.state, d.state);
	assert_string_equal(got.labels, d.labels);
	assert_true(got.joined_at == d.joined_at);
	memset(got.id, 1, 32);
	assert_int_equal(store_read(f->s, get_device, &got, &f->why), ERR_NOTFOUND);
	/* In the order of their first put, which a second put does not change. */
	read_ok(f, each_device, &t);
	assert_int_equal(t.n, 4);
	assert_memory_equal(t.tag, "\x09\x08\x07\x06", 4);
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
	t.revoked = true;
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
	CHECK(got.revoked && got.created_at == 10 && got.expires_at == 20);
	t.id[0] = 'z';
	CHECK(store_token_get(db, t.id, &got) == ERR_NOTFOUND);
	t.uses = UINT64_MAX;
	CHECK(store_token_put(db, &t) == ERR_LIMIT);
	t.uses = INT64_MAX;
	CHECK(store_token_put(db, &t) == ERR_OK);
	CHECK(store_token_get(db, t.id, &got) == ERR_OK);
	CHECK(got.uses == INT64_MAX && got.uses_left == 4);
	CHECK(store_token_each(db, collect_token, &tags) == ERR_OK);
	CHECK(tags.n == 2);
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
	char reason[300];

	(void)arg;
	for (uint8_t i = 0; i < 4; i++) {
		j = job(i, times[i]);
		CHECK(store_job_insert(db, &j) == ERR_OK);
	}
	CHECK(store_job_insert(db, &j) == ERR_EXISTS);
	CHECK(store_job_each(db, collect_job, &t) == ERR_OK);
	CHECK(t.n == 4);
	CHECK(memcmp(t.tag, "\x01\x03\x02\x00", 4) == 0);
	/* Cut to 127 bytes, not inside the two bytes of a character. */
	memset(reason, 'r', sizeof(reason));
	reason[sizeof(reason) - 1] = '\0';
	memcpy(reason + 126, "\xc3\xa9", 2);
	CHECK(store_job_set_state(db, j.id, "stopped", reason) == ERR_OK);
	CHECK(store_job_get(db, j.id, &got) == ERR_OK);
	CHECK(strcmp(got.state, "stopped") == 0);
	CHECK(strlen(got.reason) == 126);
	CHECK(got.document_len == j.document_len);
	CHECK(strcmp(got.document, j.document) == 0);
	free(got.document);
	memset(reason, 'r', sizeof(reason) - 1);
	CHECK(store_job_set_state(db, j.id, "done", reason) == ERR_OK);
	CHECK(store_job_get(db, j.id, &got) == ERR_OK);
	CHECK(strlen(got.reason) == 127);
	free(got.document);
	CHECK(store_job_set_state(db, j.id, "running", NULL) == ERR_OK);
	CHECK(store_job_set_state(db, j.id, "much too long", "") == ERR_LIMIT);
	memset(j.id, 99, 16);
	CHECK(store_job_set_state(db, j.id, "done", "") == ERR_NOTFOUND);
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
	CHECK(strcmp(got.state, "open") == 0);
	CHECK(isnan(got.loss) && isnan(got.accuracy) && isnan(got.norm) && !got.evaluate.known);
	strcpy(r.state, "committed");
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
	CHECK(strcmp(got.state, r.state) == 0);
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
accepts(struct store_db *db, void *arg, struct why *why)
{
	struct store_job j = job(1, 1);
	struct store_round r = make_round(1, 1);
	struct store_accept a, got;
	struct tags t = {.n = 0};
	static const uint8_t order[] = {200, 2, 100, 0};
	char report[] = "{\"loss\":1}";
	uint64_t count;

	(void)arg;
	a = make_accept(1, 1, 2);
	CHECK(store_accept_insert(db, &a) == ERR_NOTFOUND);
	CHECK(store_job_insert(db, &j) == ERR_OK);
	CHECK(store_round_put(db, &r) == ERR_OK);
	r.round = 2;
	CHECK(store_round_put(db, &r) == ERR_OK);
	for (size_t i = 0; i < sizeof(order); i++) {
		struct store_device d = device(order[i]);
		CHECK(store_device_put(db, &d) == ERR_OK);
		a = make_accept(1, 1, order[i]);
		a.report = order[i] == 2 ? report : NULL;
		CHECK(store_accept_insert(db, &a) == ERR_OK);
		CHECK(store_accept_insert(db, &a) == ERR_EXISTS);
	}
	a = make_accept(1, 2, 2);
	CHECK(store_accept_insert(db, &a) == ERR_OK);
	/* A round already reported to may be written again: its rows stay. */
	r.round = 1;
	CHECK(store_round_put(db, &r) == ERR_OK);
	CHECK(store_accept_each(db, a.job, 1, collect_accept, &t) == ERR_OK);
	CHECK(t.n == 4);
	CHECK(memcmp(t.tag, "\x00\x02\x64\xc8", 4) == 0);
	CHECK(store_accept_get(db, a.job, 1, a.device, &got) == ERR_OK);
	CHECK(strcmp(got.report, report) == 0);
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

static void
test_accepts(void **state)
{
	write_ok(*state, accepts, NULL);
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

/* --- the thread --- */

static enum err
put_meta(struct store_db *db, void *arg, struct why *why)
{
	char key[32];

	(void)why;
	snprintf(key, sizeof(key), "k%d", *(int *)arg);
	return store_meta_put(db, key, 1);
}

/* Writes, then fails for every third number. */
static enum err
put_meta_thirds(struct store_db *db, void *arg, struct why *why)
{
	enum err e = put_meta(db, arg, why);

	if (!e && *(int *)arg % 3 == 0)
		e = err_set(why, ERR_DENIED, "number %d", *(int *)arg);
	return e;
}

static enum err
get_meta(struct store_db *db, void *arg, struct why *why)
{
	char key[32];
	uint64_t v;

	(void)why;
	snprintf(key, sizeof(key), "k%d", *(int *)arg);
	return store_meta_get(db, key, &v);
}

enum { MANY = 1200 };

/* What the done callbacks saw. */
static struct {
	pthread_mutex_t lock;
	int order[MANY];
	enum err e[MANY];
	char why[MANY][64];
	int n;
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void
note_done(void *arg, enum err e, const struct why *why)
{
	pthread_mutex_lock(&seen.lock);
	seen.order[seen.n] = *(int *)arg;
	seen.e[seen.n] = e;
	snprintf(seen.why[seen.n], sizeof(seen.why[0]), "%.60s", why->text);
	seen.n++;
	pthread_mutex_unlock(&seen.lock);
}

/* Holds the store thread, so that what is submitted meanwhile makes whole groups. */
static pthread_barrier_t gate;

static enum err
wait_gate(struct store_db *db, void *arg, struct why *why)
{
	(void)db, (void)arg, (void)why;
	pthread_barrier_wait(&gate);
	pthread_barrier_wait(&gate);
	return ERR_OK;
}

/* Submits numbers 0 to n-1 while the thread is held, then lets it go and waits for all. */
static void
submit_held(struct fixture *f, store_work fn, int *numbers, int n)
{
	int last = -1;

	seen.n = 0;
	pthread_barrier_init(&gate, NULL, 2);
	assert_int_equal(store_submit(f->s, wait_gate, NULL, NULL), ERR_OK);
	pthread_barrier_wait(&gate);
	for (int i = 0; i < n; i++) {
		numbers[i] = i;
		assert_int_equal(store_submit(f->s, fn, note_done, &numbers[i]), ERR_OK);
	}
	pthread_barrier_wait(&gate);
	write_ok(f, put_meta, &last);
	pthread_barrier_destroy(&gate);
}

static void
test_groups(void **state)
{
	struct fixture *f = *state;
	static int numbers[MANY];
	uint64_t commits, works;

	submit_held(f, put_meta, numbers, MANY);
	store_counts(f->s, &commits, &works);
	assert_int_equal(works, MANY + 2);
	/* The gate alone, 512, 512, the rest; the last write may miss its group. */
	assert_in_range(commits, 4, 5);
	assert_int_equal(seen.n, MANY);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(seen.order[i], i);
		assert_int_equal(seen.e[i], ERR_OK);
	}
}

static void
test_isolation(void **state)
{
	struct fixture *f = *state;
	static int numbers[200];

	submit_held(f, put_meta_thirds, numbers, 200);
	assert_int_equal(seen.n, 200);
	for (int i = 0; i < 200; i++) {
		char text[32] = "";
		if (i % 3 == 0)
			snprintf(text, sizeof(text), "number %d", i);
		assert_int_equal(seen.e[i], i % 3 ? ERR_OK : ERR_DENIED);
		assert_string_equal(seen.why[i], text);
		assert_int_equal(
		    store_read(f->s, get_meta, &i, &f->why), i % 3 ? ERR_OK : ERR_NOTFOUND);
	}
}

static enum err
write_in_read(struct store_db *db, void *arg, struct why *why)
{
	return put_meta(db, arg, why);
}

struct pair {
	struct store *s;
	enum err e;
};

static enum err
read_in_read(struct store_db *db, void *arg, struct why *why)
{
	struct pair *p = arg;
	int number = 1;

	(void)db;
	p->e = store_read(p->s, get_meta, &number, why);
	return ERR_OK;
}

static enum err
write_in_write(struct store_db *db, void *arg, struct why *why)
{
	struct pair *p = arg;
	int number = 1;

	(void)db;
	p->e = store_write(p->s, put_meta, &number, why);
	return ERR_OK;
}

static void
test_misuse(void **state)
{
	struct fixture *f = *state;
	struct pair p = {.s = f->s};
	int number = 1;

	assert_int_not_equal(store_read(f->s, write_in_read, &number, &f->why), ERR_OK);
	assert_int_equal(store_read(f->s, get_meta, &number, &f->why), ERR_NOTFOUND);
	read_ok(f, read_in_read, &p);
	assert_int_equal(p.e, ERR_STATE);
	p.e = ERR_OK;
	write_ok(f, write_in_write, &p);
	assert_int_equal(p.e, ERR_STATE);
	store_close(NULL);
}

static int hook_calls;
static enum err hook_result;

static enum err
hook(void *ctx, struct why *why)
{
	hook_calls += strcmp(ctx, "context") == 0;
	return hook_result ? err_set(why, hook_result, "directory lost") : ERR_OK;
}

static void
test_before_commit(void **state)
{
	struct fixture *f = *state;
	static int numbers[50];
	char context[] = "context";
	int one = 1, three = 3;

	store_before_commit(f->s, hook, context);
	hook_calls = 0;
	hook_result = ERR_OK;
	write_ok(f, put_meta, &one);
	assert_int_equal(hook_calls, 1);
	/* Nothing to commit: no call. */
	assert_int_equal(store_write(f->s, put_meta_thirds, &three, &f->why), ERR_DENIED);
	assert_string_equal(f->why.text, "number 3");
	assert_int_equal(hook_calls, 1);
	hook_result = ERR_IO;
	for (int i = 0; i < 50; i++) {
		numbers[i] = i;
		assert_int_equal(
		    store_submit(f->s, put_meta_thirds, note_done, &numbers[i]), ERR_OK);
	}
	seen.n = 0;
	one = 1000;
	assert_int_equal(store_write(f->s, put_meta, &one, &f->why), ERR_IO);
	assert_string_equal(f->why.text, "directory lost");
	/* Nothing of the group stayed, and the next group is tried again. */
	hook_result = ERR_OK;
	assert_int_equal(store_read(f->s, get_meta, &one, &f->why), ERR_NOTFOUND);
	write_ok(f, put_meta, &one);
	read_ok(f, get_meta, &one);
	store_before_commit(f->s, NULL, NULL);
}

static enum err
put_large(struct store_db *db, void *arg, struct why *why)
{
	struct store_job j = job(*(uint8_t *)arg, 1);
	enum { LEN = 4 << 20 };

	(void)why;
	j.document = calloc(1, LEN);
	CHECK(j.document);
	memset(j.document, 'x', LEN);
	j.document_len = LEN;
	enum err e = store_job_insert(db, &j);
	free(j.document);
	return e;
}

/* A full disk, played by a limit on the size of files: the group fails as a whole, later ones work. */
static void
test_disk_full(void **state)
{
	struct fixture *f = *state;
	struct rlimit old, small;
	uint8_t tag = 1;
	int one = 1;

	write_ok(f, put_meta, &one);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = old;
	small.rlim_cur = 1 << 20;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	enum err e = store_write(f->s, put_large, &tag, &f->why);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_true(e == ERR_IO || e == ERR_NOSPACE);
	assert_true(strlen(f->why.text) > 5);
	write_ok(f, put_large, &tag);
	assert_int_equal(store_write(f->s, put_large, &tag, &f->why), ERR_EXISTS);
	read_ok(f, get_meta, &one);
}

static struct store *closing;
static enum err submit_result;

static void
submit_late(void *arg, enum err e, const struct why *why)
{
	(void)e, (void)why;
	usleep(100000);
	submit_result = store_submit(closing, put_meta, NULL, arg);
}

static void
test_close(void **state)
{
	struct fixture *f = *state;
	static int numbers[100];
	int late = 5000;
	struct stat st;
	char wal[96];

	seen.n = 0;
	submit_result = ERR_OK;
	closing = f->s;
	assert_int_equal(store_submit(f->s, put_meta, submit_late, &late), ERR_OK);
	for (int i = 0; i < 100; i++) {
		numbers[i] = i;
		assert_int_equal(store_submit(f->s, put_meta, note_done, &numbers[i]), ERR_OK);
	}
	store_close(f->s);
	f->s = NULL;
	assert_int_equal(seen.n, 100);
	assert_int_equal(submit_result, ERR_CLOSED);
	/* The log was folded into the file; nobody else may read either. */
	snprintf(wal, sizeof(wal), "%s-wal", f->path);
	assert_int_not_equal(stat(wal, &st), 0);
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(store_open(&f->s, f->path, &f->why), ERR_OK);
	for (int i = 0; i < 100; i++)
		read_ok(f, get_meta, &i);
}

struct reader {
	struct store *s;
	bool stop;
	pthread_mutex_t lock;
	size_t most;
};

static enum err
count_devices(struct store_db *db, void *arg, struct why *why)
{
	struct tags t = {.n = 0};

	(void)why;
	enum err e = store_device_each(db, collect_device, &t);
	*(size_t *)arg = t.n;
	return e;
}

/* Committed devices only ever come in pairs. */
static void *
read_pairs(void *arg)
{
	struct reader *r = arg;
	struct why why;
	bool stop = false;

	while (!stop) {
		size_t n = 1;
		enum err e = store_read(r->s, count_devices, &n, &why);
		pthread_mutex_lock(&r->lock);
		stop = r->stop;
		r->most = e || n % 2 ? 1000 : n > r->most ? n : r->most;
		pthread_mutex_unlock(&r->lock);
	}
	return NULL;
}

static enum err
put_two(struct store_db *db, void *arg, struct why *why)
{
	uint8_t tag = *(uint8_t *)arg;
	struct store_device a = device(tag), b = device((uint8_t)(tag + 100));

	(void)why;
	enum err e = store_device_put(db, &a);
	return e ? e : store_device_put(db, &b);
}

static void
test_reading_beside_writing(void **state)
{
	struct fixture *f = *state;
	struct reader r = {.s = f->s, .lock = PTHREAD_MUTEX_INITIALIZER};
	pthread_t t[2];

	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&t[i], NULL, read_pairs, &r), 0);
	for (uint8_t i = 0; i < 30; i++)
		write_ok(f, put_two, &i);
	pthread_mutex_lock(&r.lock);
	r.stop = true;
	pthread_mutex_unlock(&r.lock);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	assert_in_range(r.most, 0, 60);
	/* A committed write is seen by the next read. */
	size_t n;
	read_ok(f, count_devices, &n);
	assert_int_equal(n, 60);
}

/* --- crashes, damage, versions --- */

static void
report_done(void *arg, enum err e, const struct why *why)
{
	int *message = arg;

	(void)why;
	if (e || write(message[1], message, sizeof(int)) != sizeof(int))
		_exit(1);
}

static void
crash_child(const char *path, int fd)
{
	static int messages[100000][2];
	struct store *s;

	if (store_open(&s, path, NULL))
		_exit(2);
	for (int i = 0; i < 100000; i++) {
		messages[i][0] = i;
		messages[i][1] = fd;
		if (store_submit(s, put_meta, report_done, messages[i]))
			_exit(3);
		if (i % 100 == 0)
			usleep(1000);
	}
	_exit(4);
}

/* Everything that was reported as done before kill -9 is there afterwards. */
static void
test_kill(void **state)
{
	struct fixture *f = *state;
	int fd[2], number, reported = 0, status;

	store_close(f->s);
	f->s = NULL;
	assert_int_equal(pipe(fd), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		crash_child(f->path, fd[1]);
	close(fd[1]);
	/* The pipe is read to its end after the kill, so that nothing reported escapes the check. */
	while (read(fd[0], &number, sizeof(number)) == sizeof(number)) {
		assert_int_equal(number, reported);
		if (++reported == 2500)
			kill(child, SIGKILL);
	}
	close(fd[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_true(reported >= 2500);
	assert_int_equal(store_open(&f->s, f->path, &f->why), ERR_OK);
	for (int i = 0; i < reported; i++)
		read_ok(f, get_meta, &i);
}

static void
test_versions(void **state)
{
	struct fixture *f = *state;
	struct store_device d = device(1);
	struct store *s = NULL;

	write_ok(f, put_device, &d);
	reopen(f);
	read_ok(f, get_device, &d);
	store_close(f->s);
	f->s = NULL;
	raw(f->path, "PRAGMA user_version = 1000");
	assert_int_equal(store_open(&s, f->path, &f->why), ERR_UNSUPPORTED);
	assert_non_null(strstr(f->why.text, "newer"));
	assert_non_null(strstr(f->why.text, f->path));
	raw(f->path, "PRAGMA user_version = 1; PRAGMA application_id = 5");
	assert_int_equal(store_open(&s, f->path, &f->why), ERR_CORRUPT);
	unlink(f->path);
	raw(f->path, "CREATE TABLE theirs (a)");
	assert_int_equal(store_open(&s, f->path, &f->why), ERR_CORRUPT);
	assert_non_null(strstr(f->why.text, "another program"));
}

static void
overwrite(const char *path, off_t at, size_t len)
{
	char junk[8192];
	int fd = open(path, O_WRONLY);

	assert_true(fd >= 0 && len <= sizeof(junk));
	memset(junk, 0x5a, sizeof(junk));
	assert_int_equal(pwrite(fd, junk, len, at), (ssize_t)len);
	close(fd);
}

static void
test_damage(void **state)
{
	struct fixture *f = *state;
	struct store *s = NULL;
	uint8_t tag = 1;

	write_ok(f, put_large, &tag);
	store_close(f->s);
	f->s = NULL;
	/* After a crash (a log lies there) the whole file is checked: here the first page of a table. */
	char wal[96];
	snprintf(wal, sizeof(wal), "%s-wal", f->path);
	int fd = open(wal, O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
	overwrite(f->path, 4096, 4096);
	assert_int_equal(store_open(&s, f->path, &f->why), ERR_CORRUPT);
	/* Not a database at all. */
	overwrite(f->path, 0, 4096);
	assert_int_equal(store_open(&s, f->path, &f->why), ERR_CORRUPT);
	assert_non_null(strstr(f->why.text, f->path));
	unlink(f->path);
	assert_int_equal(mkdir(f->path, 0700), 0);
	assert_int_not_equal(store_open(&s, f->path, &f->why), ERR_OK);
	rmdir(f->path);
	assert_int_equal(store_open(&s, "/nonexistent/rivulet.db", &f->why), ERR_NOTFOUND);
}

static void
test_rows_that_do_not_fit(void **state)
{
	static const char *const bad[] = {
	    "UPDATE device SET name = printf('%064d', 1)",
	    "UPDATE device SET role = 'a' || char(0) || 'b'",
	    "PRAGMA ignore_check_constraints = 1; UPDATE device SET spki = x'00'",
	};
	struct fixture *f = *state;
	struct store_device d = device(1);
	struct tags t = {.n = 0};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		d = device(1);
		write_ok(f, put_device, &d);
		read_ok(f, get_device, &d);
		raw(f->path, bad[i]);
		assert_int_equal(store_read(f->s, get_device, &d, &f->why), ERR_CORRUPT);
		assert_non_null(strstr(f->why.text, "column"));
		assert_int_equal(store_read(f->s, each_device, &t, &f->why), ERR_CORRUPT);
		assert_int_equal(t.n, 0);
	}
}

/* The database may be read and even written by another program meanwhile; a long lock only delays. */
static void
test_lock_from_outside(void **state)
{
	struct fixture *f = *state;
	sqlite3 *db;
	int one = 1;

	assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	seen.n = 0;
	assert_int_equal(store_submit(f->s, put_meta, note_done, &one), ERR_OK);
	usleep(100000);
	assert_int_equal(store_read(f->s, get_meta, &one, &f->why), ERR_NOTFOUND);
	assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	write_ok(f, put_meta, &one);
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.e[0], ERR_OK);
}

#define WITH_STORE(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_STORE(test_devices),
	    WITH_STORE(test_tokens),
	    WITH_STORE(test_jobs),
	    WITH_STORE(test_rounds),
	    WITH_STORE(test_accepts),
	    WITH_STORE(test_models_and_meta),
	    WITH_STORE(test_each_in_each),
	    WITH_STORE(test_groups),
	    WITH_STORE(test_isolation),
	    WITH_STORE(test_misuse),
	    WITH_STORE(test_before_commit),
	    WITH_STORE(test_disk_full),
	    WITH_STORE(test_close),
	    WITH_STORE(test_reading_beside_writing),
	    WITH_STORE(test_kill),
	    WITH_STORE(test_versions),
	    WITH_STORE(test_damage),
	    WITH_STORE(test_rows_that_do_not_fit),
	    WITH_STORE(test_lock_from_outside),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
