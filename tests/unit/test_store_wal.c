/* stages: gcc openssl address thread */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "file.h"
#include "store.h"
#include "wal.h"

#define COMMITS 6
#define FRAME (24 + 4096)

struct fixture {
	char dir[64], db[80], wal[96];
	char *log; /* as it was written */
	size_t len;
	struct why why;
};

static enum err
put(struct store_db *db, void *arg, struct why *why)
{
	const uint64_t *n = arg;

	(void)why;
	return store_meta_put(db, "n", *n);
}

/* A coordinator that commits a few times and is killed: its log stays. */
static void
write_log(struct fixture *f)
{
	int status;

	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct store *s;
		if (store_create(f->db, NULL, NULL, NULL) || store_open(&s, f->db, NULL))
			_exit(1);
		for (uint64_t i = 1; i <= COMMITS; i++)
			if (store_write(s, put, &i, NULL) != ERR_OK)
				_exit(2);
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
}

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->dir, "/tmp/test_store_wal.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->db, sizeof(f->db), "%s/rivulet.db", f->dir);
	snprintf(f->wal, sizeof(f->wal), "%s-wal", f->db);
	write_log(f);
	assert_int_equal(file_read(f->wal, 64 << 20, &f->log, &f->len, &f->why), ERR_OK);
	assert_true(f->len >= 32 + COMMITS * FRAME);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(file_empty_dir(f->dir, NULL), ERR_OK);
	rmdir(f->dir);
	free(f->log);
	free(f);
	return 0;
}

static void
put_log(struct fixture *f, size_t len)
{
	assert_int_equal(file_write(f->wal, f->log, len, 0600, &f->why), ERR_OK);
}

static enum err
open_store(struct fixture *f)
{
	struct store *s = NULL;

	enum err e = store_open(&s, f->db, &f->why);
	store_close(s);
	return e;
}

static void
test_sound(void **state)
{
	struct fixture *f = *state;
	bool torn = true;

	assert_int_equal(store_wal_check(f->wal, &torn, &f->why), ERR_OK);
	assert_false(torn);
	assert_int_equal(store_wal_check("/tmp/no-such-log", &torn, &f->why), ERR_OK);
	assert_int_equal(open_store(f), ERR_OK);
}

/* Cut at any byte: the log ends earlier, as after a crash. */
static void
test_cut(void **state)
{
	struct fixture *f = *state;
	bool torn;

	for (size_t len = 0; len < f->len; len += 997) {
		put_log(f, len);
		enum err e = store_wal_check(f->wal, &torn, &f->why);
		if (e)
			fail_msg("cut at %zu: %s", len, f->why.text);
		assert_false(torn);
	}
}

/* Behind every flipped frame but those of the last commit, commits would vanish. SQLite itself says nothing. */
static void
test_flipped(void **state)
{
	struct fixture *f = *state;
	size_t frames = (f->len - 32) / FRAME, damaged = 0;
	bool torn;

	for (size_t i = 0; i < frames; i++) {
		size_t at = 32 + i * FRAME + 24 + i * 131 % 4096;
		f->log[at] ^= 4;
		put_log(f, f->len);
		enum err e = store_wal_check(f->wal, &torn, &f->why);
		assert_true(torn);
		if (i + 1 < frames)
			assert_int_equal(e, ERR_CORRUPT);
		else
			assert_int_equal(e, ERR_OK);
		damaged += e == ERR_CORRUPT;
		f->log[at] ^= 4;
	}
	assert_int_equal(damaged, frames - 1);
	f->log[32 + FRAME + 100] ^= 1;
	put_log(f, f->len);
	assert_int_equal(open_store(f), ERR_CORRUPT);
	assert_non_null(strstr(f->why.text, "frame 2 is damaged"));
}

/* In the head of a frame, too, every byte of which stands for something else. */
static void
test_flipped_heads(void **state)
{
	struct fixture *f = *state;
	size_t frames = (f->len - 32) / FRAME;
	bool torn;

	for (size_t at = 0; at < 24; at++) {
		size_t where = 32 + (frames - 3) * FRAME + at;
		f->log[where] ^= 4;
		put_log(f, f->len);
		if (store_wal_check(f->wal, &torn, &f->why) != ERR_CORRUPT)
			fail_msg("byte %zu of a frame's head passes", at);
		f->log[where] ^= 4;
	}
}

/* Two crashes, each of which left the end of a commit that was never whole: nothing that was durable is lost. */
static void
test_two_torn_ends(void **state)
{
	struct fixture *f = *state;
	size_t frames = (f->len - 32) / FRAME;
	char *last = f->log + 32 + (frames - 1) * FRAME;
	char frame[FRAME];
	bool torn;

	memcpy(frame, last - 2 * FRAME, FRAME);
	memcpy(last - 3 * FRAME, last, FRAME);
	memcpy(last - 2 * FRAME, frame, FRAME);
	put_log(f, f->len - FRAME - FRAME);
	enum err e = store_wal_check(f->wal, &torn, &f->why);
	if (e)
		fail_msg("%s", f->why.text);
	assert_true(torn);
}

/* The last commit alone may be what a power cut tore: it was not acknowledged. */
static void
test_torn_end(void **state)
{
	struct fixture *f = *state;
	bool torn;

	f->log[f->len - 1] ^= 1;
	put_log(f, f->len);
	assert_int_equal(store_wal_check(f->wal, &torn, &f->why), ERR_OK);
	assert_true(torn);
	assert_int_equal(open_store(f), ERR_OK);
}

static void
test_header(void **state)
{
	struct fixture *f = *state;
	bool torn;

	for (size_t at = 0; at < 32; at++) {
		f->log[at] ^= 1;
		put_log(f, f->len);
		assert_int_equal(store_wal_check(f->wal, &torn, &f->why), ERR_CORRUPT);
		f->log[at] ^= 1;
	}
	f->log[20] ^= 1;
	put_log(f, f->len);
	assert_int_equal(open_store(f), ERR_CORRUPT);
}

/* Frames of an older, longer log behind this one's are no damage. */
static void
test_older_frames(void **state)
{
	struct fixture *f = *state;
	bool torn;

	for (size_t i = 2; 32 + (i + 1) * FRAME <= f->len; i++)
		f->log[32 + i * FRAME + 8 + 3]--; /* salt 1 counts the logs */
	put_log(f, f->len);
	assert_int_equal(store_wal_check(f->wal, &torn, &f->why), ERR_OK);
	assert_false(torn);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_sound, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_cut, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_flipped, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_flipped_heads, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_two_torn_ends, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_torn_end, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_header, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_older_frames, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
