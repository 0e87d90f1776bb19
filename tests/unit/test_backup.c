/* stages: gcc clang openssl address thread */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "audit_rows.h"
#include "backup.h"
#include "buf.h"
#include "check.h"
#include "coordinator_fixture.h"
#include "incarnation.h"
#include "job.h"
#include "list.h"
#include "restore.h"

static char copy_dir[96], back_dir[96];

static int
setup(void **state)
{
	int rc = coordinator_setup(state);
	struct coordinator *c = *state;

	/* A state directory calls it so. */
	assert_int_equal(symlink("db", coordinator_path(c, "rivulet.db")), 0);
	snprintf(copy_dir, sizeof(copy_dir), "%s.copy", c->dir);
	snprintf(back_dir, sizeof(back_dir), "%s.back", c->dir);
	return rc;
}

static void
remove_tree(const char *dir)
{
	static const char *const folders[] = {
	    "models", "spool", "keys", "damaged", "backup.links", "."};
	char path[160];

	for (int i = 0; i < 6; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, folders[i]);
		assert_int_equal(file_empty_dir(path, NULL), ERR_OK);
		if (i < 5)
			rmdir(path);
	}
	rmdir(dir);
}

static int
teardown(void **state)
{
	remove_tree(copy_dir);
	remove_tree(back_dir);
	return coordinator_teardown(state);
}

static struct backup
backup_of(struct coordinator *c)
{
	return (struct backup){.state_dir = c->dir, .dir = copy_dir};
}

static bool
is_empty_dir(const char *dir)
{
	DIR *d = opendir(dir);
	int n = 0;

	if (!d)
		return errno == ENOENT;
	while (readdir(d))
		n++;
	closedir(d);
	return n == 2;
}

/* A job in its second round, with one of two deltas and an optimizer's state. */
static void
play(struct coordinator *c, uint8_t job[16])
{
	struct task t;

	submit(c,
	    JOB("a", "\"goal\":2,\"deadline_s\":600",
		",\"aggregate\":{\"server_optimizer\":{\"name\":\"sgd\",\"momentum\":0.5}}"),
	    job);
	for (uint8_t tag = 1; tag <= 2; tag++) {
		assert_string_equal(ask(c, tag, &t), "");
		assert_null(deliver(c, &t, tag, 0.25f, 100));
	}
	await_rounds(c, job, 1);
	assert_string_equal(ask(c, 1, &t), "");
	assert_null(deliver(c, &t, 1, 0.5f, 100));
}

/* The damage that `check` finds in a directory. */
static unsigned
damage_in(const char *dir)
{
	struct check *c = calloc(1, sizeof(*c));
	struct why why = {""};

	assert_non_null(c);
	c->quiet = true;
	if (check_run(c, dir, &why) != ERR_OK)
		fail_msg("%s", why.text);
	unsigned damage = c->left[CHECK_DAMAGE] + c->left[CHECK_WARNING];
	struct buf text;
	buf_init(&text, 1 << 20);
	if (damage > 0 && json_print(&text, c->findings, false) == ERR_OK)
		print_message("%s\n", buf_str(&text));
	buf_deinit(&text);
	check_deinit(c);
	free(c);
	return damage;
}

static void
whole(void **state)
{
	struct coordinator *c = *state;
	struct backup b = backup_of(c);
	uint8_t job[16];
	struct stat st;

	play(c, job);
	if (backup_make(&b, &c->why) != ERR_OK)
		fail_msg("%s", c->why.text);
	/* The database, models 0 and 1, a state, a delta. */
	assert_int_equal(b.files, 5);
	assert_int_equal(b.incarnation, 1);
	assert_int_equal(damage_in(copy_dir), 0);
	assert_int_equal(stat(copy_dir, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(access(coordinator_path(c, "backup.links"), F_OK), -1);
	/* There and back: the same again, and what is there is not written over. */
	struct backup r = {.state_dir = back_dir, .dir = copy_dir};
	assert_int_equal(backup_restore_run(&r, &c->why), ERR_OK);
	assert_int_equal(r.files, 5);
	assert_true(b.bytes > 0 && b.bytes == r.bytes);
	assert_string_equal(backup_restore_missing_key(back_dir), "keys/ca.key");
	assert_int_equal(backup_restore_run(&r, &c->why), ERR_EXISTS);
	assert_int_equal(backup_make(&b, &c->why), ERR_EXISTS);
	/* Its own name would fit, but not those of its files. */
	char far[PATH_MAX - 100];
	memset(far, '/', sizeof(far) - 1);
	memcpy(far, b.dir, strlen(b.dir));
	strcpy(far + sizeof(far) - 3, "/x");
	b.dir = far;
	assert_int_equal(backup_make(&b, &c->why), ERR_LIMIT);
	assert_int_equal(access(far, F_OK), -1);
}

struct flying {
	struct coordinator *c;
	atomic_bool stop;
	unsigned copies, tries;
	char why[256];
};

static void *
copy_again_and_again(void *arg)
{
	struct flying *f = arg;
	struct why why = {""};

	while (!atomic_load(&f->stop)) {
		struct backup b = backup_of(f->c);
		if (backup_make(&b, &why) != ERR_OK) {
			snprintf(f->why, sizeof(f->why), "%s", why.text);
			break;
		}
		if (damage_in(copy_dir) > 0) {
			snprintf(f->why, sizeof(f->why), "copy %u is damaged", f->copies);
			break;
		}
		f->copies++;
		f->tries += b.tries;
		remove_tree(copy_dir);
	}
	return NULL;
}

/* Rounds come and go under a backup, each removing its deltas, its state and an old model. */
static void
while_rounds_fly(void **state)
{
	struct coordinator *c = *state;
	struct flying f = {.c = c};
	struct task t;
	uint8_t job[16];
	pthread_t thread;

	c->config.keep_last = 1;
	c->config.keep_every = 0;
	submit(c,
	    JOB("a", "\"goal\":1,\"deadline_s\":600",
		",\"aggregate\":{\"server_optimizer\":{\"name\":\"sgd\",\"momentum\":0.5}}"),
	    job);
	assert_int_equal(pthread_create(&thread, NULL, copy_again_and_again, &f), 0);
	for (uint64_t round = 1; round <= 150; round++) {
		assert_string_equal(ask(c, 1, &t), "");
		assert_null(deliver(c, &t, 1, 0.01f, 100));
		await_rounds(c, job, round);
	}
	atomic_store(&f.stop, true);
	pthread_join(thread, NULL);
	if (f.why[0])
		fail_msg("%s", f.why);
	assert_true(f.copies > 2);
	print_message("%u copies in %u tries beside 150 rounds\n", f.copies, f.tries);
}

static void
missing_file(void **state)
{
	struct coordinator *c = *state;
	struct backup b = backup_of(c);
	uint8_t job[16];
	char name[96], hex[65];

	play(c, job);
	struct json *v = job_json(c, job);
	snprintf(hex, sizeof(hex), "%s", json_string(json_get(v, "model")));
	json_free(v);
	snprintf(name, sizeof(name), "models/%s", hex);
	assert_int_equal(unlink(coordinator_path(c, name)), 0);
	assert_int_equal(backup_make(&b, &c->why), ERR_NOTFOUND);
	assert_non_null(strstr(c->why.text, hex));
	assert_true(is_empty_dir(copy_dir));
	assert_int_equal(access(coordinator_path(c, "backup.links"), F_OK), -1);
}

static void
flipped_file(void **state)
{
	struct coordinator *c = *state;
	struct backup b = backup_of(c);
	uint8_t job[16];
	char name[96];

	play(c, job);
	struct json *v = job_json(c, job);
	snprintf(name, sizeof(name), "models/%s", json_string(json_get(v, "model")));
	json_free(v);
	int fd = open(coordinator_path(c, name), O_WRONLY);
	assert_true(fd >= 0);
	assert_int_equal(file_pwrite(fd, "x", 1, 100), ERR_OK);
	close(fd);
	assert_int_equal(backup_make(&b, &c->why), ERR_CORRUPT);
	assert_non_null(strstr(c->why.text, "does not match its name"));
	assert_true(is_empty_dir(copy_dir));
}

/* A spool on a file system of its own cannot be linked. */
static void
other_file_system(void **state)
{
	struct coordinator *c = *state;
	struct backup b = backup_of(c);
	char shm[] = "/dev/shm/test_backup.XXXXXX";
	uint8_t job[16];

	if (!mkdtemp(shm))
		skip();
	/* An agent beside this test tidies up what nobody has open. */
	int held = open(shm, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	coordinator_stop(c);
	assert_int_equal(rmdir(coordinator_path(c, "spool")), 0);
	assert_int_equal(symlink(shm, coordinator_path(c, "spool")), 0);
	coordinator_start(c);
	play(c, job);
	enum err e = backup_make(&b, &c->why);
	assert_int_equal(file_empty_dir(shm, NULL), ERR_OK);
	assert_int_equal(rmdir(shm), 0);
	close(held);
	assert_int_equal(unlink(coordinator_path(c, "spool")), 0);
	assert_int_equal(mkdir(coordinator_path(c, "spool"), 0700), 0);
	if (e)
		fail_msg("%s", c->why.text);
	assert_int_equal(b.files, 5);
	assert_int_equal(damage_in(copy_dir), 0);
}

static void
one_at_a_time(void **state)
{
	struct coordinator *c = *state;
	struct backup b = backup_of(c);
	char path[160];

	assert_int_equal(mkdir(coordinator_path(c, "backup.links"), 0700), 0);
	int fd = open(coordinator_path(c, "backup.links"), O_RDONLY | O_DIRECTORY);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(backup_make(&b, &c->why), ERR_STATE);
	/* Into the same directory: what the other one has written stays. */
	snprintf(path, sizeof(path), "%s/rivulet.db", copy_dir);
	assert_int_equal(file_write(path, "x", 1, 0600, NULL), ERR_OK);
	assert_int_equal(backup_make(&b, &c->why), ERR_EXISTS);
	assert_int_equal(unlink(path), 0);
	close(fd);
	/* Left by a killed one. */
	assert_int_equal(
	    file_write(coordinator_path(c, "backup.links/0"), "x", 1, 0600, NULL), ERR_OK);
	assert_int_equal(backup_make(&b, &c->why), ERR_OK);
}

/* A list is only read; what it names must lie in the copy. */
static void
names_that_lead_away(void **state)
{
	static const char *const bad[] = {"../x", "/etc/passwd", "models/../../x", "models/a/b",
	    "models/", "keys/.x", "spool/..", "rivulet.db-wal", "other/x", ""};
	struct coordinator *c = *state;
	struct backup r = {.state_dir = back_dir, .dir = copy_dir};
	struct backup_list_entry entry = {.bytes = 1};

	assert_int_equal(mkdir(copy_dir, 0700), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct json *list = backup_list_new(1, false);
		snprintf(entry.name, sizeof(entry.name), "%s", bad[i]);
		backup_list_add(list, &entry);
		assert_int_equal(backup_list_save(list, copy_dir, &c->why), ERR_OK);
		json_free(list);
		enum err e = backup_restore_run(&r, &c->why);
		if (e != ERR_CORRUPT)
			fail_msg("\"%s\": %s", bad[i], err_name(e));
	}
}

static void
changed_copy(void **state)
{
	struct coordinator *c = *state;
	struct backup b = backup_of(c), r = {.state_dir = back_dir, .dir = copy_dir};
	char path[160];
	uint8_t job[16], byte;

	play(c, job);
	assert_int_equal(backup_make(&b, &c->why), ERR_OK);
	snprintf(path, sizeof(path), "%s/rivulet.db", copy_dir);
	int fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(file_pread(fd, &byte, 1, 5000), ERR_OK);
	byte ^= 1;
	assert_int_equal(file_pwrite(fd, &byte, 1, 5000), ERR_OK);
	close(fd);
	assert_true(damage_in(copy_dir) > 0);
	assert_int_equal(backup_restore_run(&r, &c->why), ERR_CORRUPT);
	snprintf(path, sizeof(path), "%s/rivulet.db", back_dir);
	assert_int_equal(access(path, F_OK), -1);
}

static enum err
count_entries(void *ctx, const struct store_audit *a)
{
	*(int *)ctx += strstr(a->body, "coordinator.restored") != NULL;
	return ERR_OK;
}

static enum err
count_restored(struct store_db *db, void *arg, struct why *why)
{
	(void)why;
	return store_audit_each(db, 1, INT64_MAX, count_entries, arg);
}

/* Raised at the first start from a copy, and no more after that; above all that a life of the same copy may have. The original
 * stays what it is. */
static void
raised_once(void **state)
{
	struct coordinator *c = *state;
	struct backup b = backup_of(c);
	struct services s = {.config = c->s.config, .fixed = &c->config, .sign_key = c->s.sign_key};
	char path[160];
	double now = clock_wall();
	uint64_t raised = 0;
	int entries = 0;

	assert_int_equal(incarnation_begin(&c->s, c->dir, &c->why), ERR_OK);
	assert_int_equal(c->s.incarnation, 1);
	assert_int_equal(backup_make(&b, &c->why), ERR_OK);
	assert_int_equal(incarnation_begin(&c->s, c->dir, &c->why), ERR_OK);
	assert_int_equal(c->s.incarnation, 1);
	snprintf(path, sizeof(path), "%s/rivulet.db", copy_dir);
	for (int start = 0; start < 3; start++) {
		assert_int_equal(store_open(&s.store, path, &c->why), ERR_OK);
		if (incarnation_begin(&s, copy_dir, &c->why) != ERR_OK)
			fail_msg("%s", c->why.text);
		if (start == 0)
			raised = s.incarnation;
		assert_true(raised >= (uint64_t)now && s.incarnation == raised);
		if (start == 2)
			assert_int_equal(
			    store_read(s.store, count_restored, &entries, &c->why), ERR_OK);
		store_close(s.store);
	}
	assert_int_equal(entries, 1);
	snprintf(path, sizeof(path), "%s/" BACKUP_LIST_NAME, copy_dir);
	assert_int_equal(access(path, F_OK), -1);
}

#define WITH_COORDINATOR(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_COORDINATOR(whole),
	    WITH_COORDINATOR(while_rounds_fly),
	    WITH_COORDINATOR(missing_file),
	    WITH_COORDINATOR(flipped_file),
	    WITH_COORDINATOR(other_file_system),
	    WITH_COORDINATOR(one_at_a_time),
	    WITH_COORDINATOR(names_that_lead_away),
	    WITH_COORDINATOR(changed_copy),
	    WITH_COORDINATOR(raised_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
