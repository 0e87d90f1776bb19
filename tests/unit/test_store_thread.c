/* stages: gcc openssl address thread */
#include "report.h"
#include "store_fixture.h"

/* --- the thread --- */

/* Writes, then fails for every third number. */
static enum err
put_meta_thirds(struct store_db *db, void *arg, struct why *why)
{
	enum err e = put_meta(db, arg, why);

	if (!e && *(int *)arg % 3 == 0)
		e = err_set(why, ERR_DENIED, "number %d", *(int *)arg);
	return e;
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
	struct store_report report;

	submit_held(f, put_meta, numbers, MANY);
	store_report(f->s, &report);
	assert_int_equal(report.works_total, MANY + 2);
	/* The gate alone, 512, 512, the rest; the last write may miss its group. */
	assert_in_range(report.commits_total, 4, 5);
	assert_in_range(report.commit_seconds.count, 4, 5);
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

static enum err
refuse(struct store_db *db, void *arg, struct why *why)
{
	(void)db;
	(void)arg;
	return err_set(why, ERR_DENIED, "no");
}

/* Opening never makes a database, and one that is made is there whole or not at all. */
static void
test_create(void **state)
{
	struct fixture *f = *state;
	struct store *s = NULL;
	int number = 7;
	struct stat st;

	assert_int_equal(store_create(f->path, NULL, NULL, &f->why), ERR_EXISTS);
	store_close(f->s);
	f->s = NULL;
	unlink(f->path);
	assert_int_equal(store_open(&s, f->path, &f->why), ERR_NOTFOUND);
	assert_int_not_equal(stat(f->path, &st), 0);
	assert_int_equal(store_create(f->path, refuse, NULL, &f->why), ERR_DENIED);
	assert_int_not_equal(stat(f->path, &st), 0);
	assert_int_equal(store_create(f->path, put_meta, &number, &f->why), ERR_OK);
	assert_int_equal(store_open(&f->s, f->path, &f->why), ERR_OK);
	read_ok(f, get_meta, &number);
	store_close(f->s);
	f->s = NULL;
	assert_int_equal(truncate(f->path, 0), 0);
	assert_int_equal(store_open(&s, f->path, &f->why), ERR_NOTFOUND);
	assert_non_null(strstr(f->why.text, "empty"));
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_size, 0);
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
	    "UPDATE device SET state = 'asleep'",
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_STORE(test_groups),
	    WITH_STORE(test_isolation),
	    WITH_STORE(test_misuse),
	    WITH_STORE(test_before_commit),
	    WITH_STORE(test_disk_full),
	    WITH_STORE(test_close),
	    WITH_STORE(test_reading_beside_writing),
	    WITH_STORE(test_kill),
	    WITH_STORE(test_create),
	    WITH_STORE(test_versions),
	    WITH_STORE(test_damage),
	    WITH_STORE(test_rows_that_do_not_fit),
	    WITH_STORE(test_lock_from_outside),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
