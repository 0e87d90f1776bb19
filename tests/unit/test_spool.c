#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "hex.h"
#include "spool.h"

#define QUOTA 1000

struct fixture {
	char dir[64], spool_dir[80];
	struct spool *s;
	struct why why;
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->dir, "/tmp/test_spool.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->spool_dir, sizeof(f->spool_dir), "%s/spool", f->dir);
	assert_int_equal(spool_open(&f->s, f->spool_dir, QUOTA, &f->why), ERR_OK);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	spool_close(f->s);
	assert_int_equal(file_empty_dir(f->spool_dir, &f->why), ERR_OK);
	assert_int_equal(rmdir(f->spool_dir), 0);
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

static void
reopen(struct fixture *f, uint64_t quota)
{
	spool_close(f->s);
	f->s = NULL;
	assert_int_equal(spool_open(&f->s, f->spool_dir, quota, &f->why), ERR_OK);
}

static const uint8_t *
task(uint8_t tag)
{
	static uint8_t id[16];

	memset(id, tag, sizeof(id));
	return id;
}

static unsigned
files(const struct fixture *f)
{
	DIR *d = opendir(f->spool_dir);
	struct dirent *ent;
	unsigned n = 0;

	assert_non_null(d);
	while ((ent = readdir(d)))
		n += ent->d_name[0] != '.';
	closedir(d);
	return n;
}

static void
path_of(const struct fixture *f, uint8_t tag, char out[160])
{
	char hex[33];

	hex_encode(hex, task(tag), 16);
	snprintf(out, 160, "%s/%s.delta", f->spool_dir, hex);
}

/* A part of len bytes of value `fill`, complete and synced. */
static void
write_part(struct fixture *f, uint8_t tag, size_t len, uint8_t fill, struct spool_part *part)
{
	uint8_t bytes[QUOTA];

	memset(bytes, fill, sizeof(bytes));
	assert_int_equal(spool_begin(f->s, task(tag), len, part, &f->why), ERR_OK);
	assert_int_equal(file_pwrite(part->fd, bytes, len, 0), ERR_OK);
	assert_int_equal(spool_sync(f->s, part, &f->why), ERR_OK);
}

static void
accept_delta(struct fixture *f, uint8_t tag, size_t len, uint8_t fill)
{
	struct spool_part part;

	write_part(f, tag, len, fill, &part);

	assert_int_equal(spool_accept(f->s, &part, task(tag), &f->why), ERR_OK);
	/* The end of every request drops its part; by then this one is no part any more. */
	spool_drop(f->s, &part);
}

static void
accepted_and_removed(void **state)
{
	struct fixture *f = *state;
	uint8_t bytes[300];
	struct stat st;
	char path[160];
	int fd;

	accept_delta(f, 1, 300, 7);
	assert_int_equal(spool_used(f->s), 300);
	assert_int_equal(files(f), 1);
	path_of(f, 1, path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(spool_read(f->s, task(1), 300, &fd, &f->why), ERR_OK);
	assert_int_equal(file_pread(fd, bytes, sizeof(bytes), 0), ERR_OK);
	assert_int_equal(bytes[0] + bytes[299], 14);
	close(fd);
	spool_remove(f->s, task(1), 300);
	assert_int_equal(spool_used(f->s), 0);
	assert_int_equal(files(f), 0);
	/* Removing what is gone gives nothing back. */
	spool_remove(f->s, task(1), 300);
	assert_int_equal(spool_used(f->s), 0);
}

static void
dropped(void **state)
{
	struct fixture *f = *state;
	struct spool_part part;

	write_part(f, 1, 300, 7, &part);

	assert_int_equal(spool_used(f->s), 300);
	assert_int_equal(files(f), 1);
	spool_drop(f->s, &part);
	assert_int_equal(spool_used(f->s), 0);
	assert_int_equal(files(f), 0);
	spool_drop(f->s, &part);
	assert_int_equal(spool_used(f->s), 0);
}

/* A new transfer of a task ends the older, incomplete one; many cost no more quota than one. */
static void
superseded(void **state)
{
	struct fixture *f = *state;
	struct spool_part part[8];

	for (int i = 0; i < 8; i++) {
		assert_int_equal(spool_begin(f->s, task(1), QUOTA, &part[i], &f->why), ERR_OK);
		assert_int_equal(file_pwrite(part[i].fd, "12345", 5, 0), ERR_OK);
	}
	for (int i = 0; i < 8; i++) {
		assert_int_equal(part[i].superseded, i < 7);
		assert_int_equal(lseek(part[i].fd, 0, SEEK_END), i < 7 ? 0 : 5);
	}
	assert_int_equal(spool_used(f->s), QUOTA);
	assert_int_equal(spool_sync(f->s, &part[0], &f->why), ERR_AGAIN);
	assert_int_equal(spool_sync(f->s, &part[7], &f->why), ERR_OK);
	/* A complete one is not ended any more. */
	assert_int_equal(spool_begin(f->s, task(1), 1, &part[0], &f->why), ERR_NOSPACE);
	for (int i = 1; i < 8; i++)
		spool_drop(f->s, &part[i]);
	assert_int_equal(spool_used(f->s), 0);
}

static void
quota(void **state)
{
	struct fixture *f = *state;
	struct spool_part part, more;

	accept_delta(f, 1, 400, 1);
	write_part(f, 2, 600, 2, &part);
	assert_true(spool_full(f->s, 1));
	assert_int_equal(spool_begin(f->s, task(3), 1, &more, &f->why), ERR_NOSPACE);
	spool_drop(f->s, &more);
	assert_int_equal(spool_used(f->s), QUOTA);
	assert_int_equal(files(f), 2);
	spool_drop(f->s, &part);
	assert_false(spool_full(f->s, 1));
	assert_int_equal(spool_begin(f->s, task(3), 601, &more, &f->why), ERR_NOSPACE);
	assert_int_equal(spool_begin(f->s, task(3), 600, &more, &f->why), ERR_OK);
	spool_drop(f->s, &more);
	/* Nor does a sum that wraps get in. */
	assert_int_equal(spool_begin(f->s, task(3), UINT64_MAX, &more, &f->why), ERR_NOSPACE);
	assert_int_equal(spool_used(f->s), 400);
}

static void
no_quota(void **state)
{
	struct fixture *f = *state;
	struct spool_part part;

	reopen(f, 0);
	assert_int_equal(spool_begin(f->s, task(1), (uint64_t)1 << 40, &part, &f->why), ERR_OK);
	assert_false(spool_full(f->s, 1));
	spool_drop(f->s, &part);
}

/* Two uploads of one task at once have files of their own; one of them is accepted. */
static void
two_parts_of_one_task(void **state)
{
	struct fixture *f = *state;
	struct spool_part a, b;

	write_part(f, 1, 100, 1, &a);
	write_part(f, 1, 100, 2, &b);
	uint8_t first;
	int fd;

	assert_string_not_equal(a.path, b.path);
	assert_int_equal(spool_accept(f->s, &b, task(1), &f->why), ERR_OK);
	spool_drop(f->s, &a);
	spool_drop(f->s, &b);
	assert_int_equal(files(f), 1);
	assert_int_equal(spool_used(f->s), 100);
	assert_int_equal(spool_read(f->s, task(1), 100, &fd, &f->why), ERR_OK);
	assert_int_equal(file_pread(fd, &first, 1, 0), ERR_OK);
	assert_int_equal(first, 2);
	close(fd);
}

static void
accept_that_fails(void **state)
{
	struct fixture *f = *state;
	struct spool_part part;

	write_part(f, 1, 100, 1, &part);

	assert_int_equal(unlink(part.path), 0);
	assert_int_equal(spool_accept(f->s, &part, task(1), &f->why), ERR_NOTFOUND);
	assert_non_null(strstr(f->why.text, part.path));
	spool_drop(f->s, &part);
	assert_int_equal(spool_used(f->s), 0);
	assert_int_equal(files(f), 0);
}

/* Names are synced when there are new ones. A folder that is gone shows whether it was tried. */
static void
names_are_synced(void **state)
{
	struct fixture *f = *state;
	char aside[96];

	accept_delta(f, 1, 100, 1);
	snprintf(aside, sizeof(aside), "%s.aside", f->spool_dir);
	assert_int_equal(rename(f->spool_dir, aside), 0);
	assert_int_equal(spool_sync_names(f->s, &f->why), ERR_NOTFOUND);
	assert_int_equal(spool_sync_names(f->s, &f->why), ERR_NOTFOUND);
	assert_int_equal(rename(aside, f->spool_dir), 0);
	assert_int_equal(spool_sync_names(f->s, &f->why), ERR_OK);
	assert_int_equal(rename(f->spool_dir, aside), 0);
	assert_int_equal(spool_sync_names(f->s, &f->why), ERR_OK);
	assert_int_equal(rename(aside, f->spool_dir), 0);
}

static void
damage(void **state)
{
	struct fixture *f = *state;
	char path[160];
	int fd = 5;

	assert_int_equal(spool_read(f->s, task(1), 100, &fd, &f->why), ERR_NOTFOUND);
	assert_int_equal(fd, -1);
	accept_delta(f, 1, 100, 1);
	path_of(f, 1, path);
	assert_int_equal(truncate(path, 99), 0);
	assert_int_equal(spool_read(f->s, task(1), 100, &fd, &f->why), ERR_CORRUPT);
	assert_int_equal(fd, -1);
	assert_non_null(strstr(f->why.text, path));
	assert_int_equal(truncate(path, 101), 0);
	assert_int_equal(spool_read(f->s, task(1), 100, &fd, &f->why), ERR_CORRUPT);
}

/* --- after a restart */

struct keeper {
	uint8_t tag;
	unsigned asked;
};

static bool
keep(void *ctx, const uint8_t id[16])
{
	struct keeper *k = ctx;

	k->asked++;
	return id[0] == k->tag;
}

static void
recover(void **state)
{
	struct fixture *f = *state;
	struct keeper k = {.tag = 2};
	char path[160];
	int fd;

	accept_delta(f, 1, 100, 1);
	accept_delta(f, 2, 200, 2);
	struct spool_part part;

	write_part(f, 3, 300, 3, &part);
	close(part.fd);
	/* Names that are nearly ours. */
	snprintf(path, sizeof(path), "%s/%032d.DELTA", f->spool_dir, 2);
	assert_int_equal(file_write(path, "x", 1, 0600, &f->why), ERR_OK);
	snprintf(path, sizeof(path), "%s/%032d.deltas", f->spool_dir, 2);
	assert_int_equal(file_write(path, "x", 1, 0600, &f->why), ERR_OK);
	snprintf(path, sizeof(path), "%s/folder", f->spool_dir);
	assert_int_equal(mkdir(path, 0700), 0);
	reopen(f, QUOTA);
	assert_int_equal(spool_recover(f->s, keep, &k, &f->why), ERR_OK);
	assert_int_equal(k.asked, 2);
	assert_int_equal(spool_used(f->s), 200);
	assert_int_equal(files(f), 2);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(spool_read(f->s, task(2), 200, &fd, &f->why), ERR_OK);
	close(fd);
	spool_remove(f->s, task(2), 200);
	assert_int_equal(spool_used(f->s), 0);
}

/* A quota that was lowered below what is there lets nothing in until rounds end. */
static void
recover_above_the_quota(void **state)
{
	struct fixture *f = *state;
	struct keeper k = {.tag = 2};
	struct spool_part part;

	accept_delta(f, 2, 200, 2);
	reopen(f, 100);
	assert_int_equal(spool_recover(f->s, keep, &k, &f->why), ERR_OK);
	assert_true(spool_full(f->s, 1));
	assert_int_equal(spool_begin(f->s, task(3), 1, &part, &f->why), ERR_NOSPACE);
	spool_remove(f->s, task(2), 200);
	assert_int_equal(spool_begin(f->s, task(3), 1, &part, &f->why), ERR_OK);
	spool_drop(f->s, &part);
}

static void
recover_without_a_folder(void **state)
{
	struct fixture *f = *state;
	struct keeper k = {.tag = 2};

	assert_int_equal(rmdir(f->spool_dir), 0);
	assert_int_equal(spool_recover(f->s, keep, &k, &f->why), ERR_NOTFOUND);
	assert_int_equal(mkdir(f->spool_dir, 0700), 0);
}

static void
paths_too_long(void **state)
{
	struct fixture *f = *state;
	struct spool *s = NULL;
	char *dir = calloc(1, 5000);

	memset(dir, 'x', 4999);
	dir[0] = '/';
	assert_int_equal(spool_open(&s, dir, 0, &f->why), ERR_LIMIT);
	assert_null(s);
	free(dir);
}

/* --- many at once */

struct upload {
	struct fixture *f;
	uint8_t tag;
	unsigned failures;
};

static void *
upload(void *arg)
{
	struct upload *u = arg;
	uint8_t id[16];
	struct why why;

	memset(id, u->tag, sizeof(id));
	for (int i = 0; i < 50; i++) {
		struct spool_part part;
		enum err e = spool_begin(u->f->s, id, 100, &part, &why);
		if (e == ERR_OK && i % 2 == 0)
			e = spool_accept(u->f->s, &part, id, &why);
		u->failures += e != ERR_OK;
		spool_drop(u->f->s, &part);
		if (i % 2 == 0)
			spool_remove(u->f->s, id, 100);
	}
	return NULL;
}

static void
uploads_at_once(void **state)
{
	struct fixture *f = *state;
	struct upload u[4];
	pthread_t ids[4];

	for (uint8_t i = 0; i < 4; i++) {
		u[i] = (struct upload){f, i, 0};
		assert_int_equal(pthread_create(&ids[i], NULL, upload, &u[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(ids[i], NULL);
		assert_int_equal(u[i].failures, 0);
	}
	assert_int_equal(spool_used(f->s), 0);
	assert_int_equal(files(f), 0);
}

#define WITH_SPOOL(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_SPOOL(accepted_and_removed),
	    WITH_SPOOL(dropped),
	    WITH_SPOOL(quota),
	    WITH_SPOOL(superseded),
	    WITH_SPOOL(no_quota),
	    WITH_SPOOL(two_parts_of_one_task),
	    WITH_SPOOL(accept_that_fails),
	    WITH_SPOOL(names_are_synced),
	    WITH_SPOOL(damage),
	    WITH_SPOOL(recover),
	    WITH_SPOOL(recover_above_the_quota),
	    WITH_SPOOL(recover_without_a_folder),
	    WITH_SPOOL(paths_too_long),
	    WITH_SPOOL(uploads_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
