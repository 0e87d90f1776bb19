#ifndef STORE_FIXTURE_H
#define STORE_FIXTURE_H
/* A store in a directory of its own, and rows of each kind: what tests of the store share. */

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

#include "row.h"
#include "states.h"
#include "store.h"

/* For works, which run on the store's thread: cmocka's asserts only work on the main one. */
#define CHECK(x) \
	do { \
		if (!(x)) \
			return err_set(why, ERR_STATE, "line %d: %s", __LINE__, #x); \
	} while (0)

struct fixture {
	char dir[64], path[80];
	struct store *s;
	struct why why;
};

static inline int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->dir, "/tmp/test_store.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/rivulet.db", f->dir);
	assert_int_equal(store_create(f->path, NULL, NULL, &f->why), ERR_OK);
	assert_int_equal(store_open(&f->s, f->path, &f->why), ERR_OK);
	*state = f;
	return 0;
}

static inline int
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

static inline void
reopen(struct fixture *f)
{
	store_close(f->s);
	f->s = NULL;
	assert_int_equal(store_open(&f->s, f->path, &f->why), ERR_OK);
}

/* Runs fn as one work and fails the test with its reason. */
static inline void
write_ok(struct fixture *f, store_work fn, void *arg)
{
	enum err e = store_write(f->s, fn, arg, &f->why);

	if (e)
		fail_msg("%s: %s", err_name(e), f->why.text);
}

static inline void
read_ok(struct fixture *f, store_work fn, void *arg)
{
	enum err e = store_read(f->s, fn, arg, &f->why);

	if (e)
		fail_msg("%s: %s", err_name(e), f->why.text);
}

/* The same from outside, for what the interface cannot do. */
static inline void
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

static inline struct store_device
device(uint8_t tag)
{
	struct store_device d = {.role = "device",
	    .state = DEVICE_ACTIVE,
	    .labels = "{\"site\":\"north\"}",
	    .joined_at = 1.5};

	memset(d.id, tag, sizeof(d.id));
	memset(d.spki, tag + 1, sizeof(d.spki));
	snprintf(d.name, sizeof(d.name), "device %u", tag);
	return d;
}

static inline struct store_job
job(uint8_t tag, double created_at)
{
	static char document[] = "{\"name\":\"j\"}";
	struct store_job j = {.document = document,
	    .document_len = strlen(document),
	    .state = JOB_RUNNING,
	    .created_at = created_at};

	memset(j.id, tag, sizeof(j.id));
	return j;
}

static inline struct store_round
make_round(uint8_t tag, uint64_t number)
{
	struct store_round r = {.round = number,
	    .state = OUTCOME_OPEN,
	    .goal = 10,
	    .loss = NAN,
	    .accuracy = NAN,
	    .norm = NAN,
	    .opened_at = 100.25};

	memset(r.job, tag, sizeof(r.job));
	memset(r.base, 0xb5, sizeof(r.base));
	return r;
}

static inline struct store_accept
make_accept(uint8_t tag, uint64_t number, uint8_t device_tag)
{
	struct store_accept a = {
	    .round = number, .folded = number, .body_bytes = 12345, .accepted_at = 7.0};

	memset(a.job, tag, sizeof(a.job));
	memset(a.device, device_tag, sizeof(a.device));
	memset(a.task, 3, sizeof(a.task));
	memset(a.manifest, 4, sizeof(a.manifest));
	memset(a.receipt, 5, sizeof(a.receipt));
	return a;
}

static inline enum err
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

static inline enum err
collect_device(void *ctx, const struct store_device *d)
{
	struct tags *t = ctx;

	t->tag[t->n++] = d->id[0];
	return t->n == 3 ? t->stop : ERR_OK;
}

static inline enum err
each_device(struct store_db *db, void *arg, struct why *why)
{
	(void)why;
	return store_device_each(db, collect_device, arg);
}

static inline enum err
get_device(struct store_db *db, void *arg, struct why *why)
{
	struct store_device *d = arg;

	(void)why;
	return store_device_get(db, d->id, d);
}

static inline enum err
put_meta(struct store_db *db, void *arg, struct why *why)
{
	char key[32];

	(void)why;
	snprintf(key, sizeof(key), "k%d", *(int *)arg);
	return store_meta_put(db, key, 1);
}

static inline enum err
get_meta(struct store_db *db, void *arg, struct why *why)
{
	char key[32];
	uint64_t v;

	(void)why;
	snprintf(key, sizeof(key), "k%d", *(int *)arg);
	return store_meta_get(db, key, &v);
}

#define WITH_STORE(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

#endif
