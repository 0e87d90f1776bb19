/* stages: gcc openssl address thread */
#include "lost.h"
#include "spool_fixture.h"

static const uint8_t secret[32] = {1, 2, 3}, other_secret[32] = {4};

/* --- encryption */

static bool
holds(const char *path, const void *bytes, size_t len)
{
	char *text;
	size_t n;

	assert_int_equal(file_read(path, 1 << 23, &text, &n, NULL), ERR_OK);
	bool found = memmem(text, n, bytes, len) != NULL;
	free(text);
	return found;
}

static void
encrypted(void **state)
{
	struct fixture *f = *state;
	uint8_t plain[64], piece[37];
	struct delta_file file;

	memset(plain, 7, sizeof(plain));
	accept_delta(f, 1, 300, 7);
	open_spool(f, 0, secret);
	assert_int_equal(verify(f, 1), ERR_OK); /* from before there was a key */
	accept_delta(f, 2, MANIFEST_CHUNK + 5000, 7);
	accept_delta(f, 3, 300, 7);
	assert_true(holds(path_of(f, 1, ".delta"), plain, sizeof(plain)));
	assert_false(holds(path_of(f, 2, ".delta"), plain, 8));
	assert_false(holds(path_of(f, 3, ".delta"), plain, 8));
	assert_int_equal(verify(f, 2), ERR_OK);
	assert_int_equal(spool_read(f->s, task(2), NULL, &file, &f->why), ERR_OK);
	for (uint64_t at = file.leaf_bytes; at + sizeof(piece) <= file.body_bytes; at += 4099) {
		assert_int_equal(delta_file_read(&file, piece, sizeof(piece), at), ERR_OK);
		assert_memory_equal(piece, plain, sizeof(piece));
	}
	delta_file_close(&file);
	flip(path_of(f, 2, ".delta"), 200);
	assert_int_equal(verify(f, 2), ERR_CORRUPT);
	flip(path_of(f, 3, ".delta"), OVER + 7);
	assert_int_equal(verify(f, 3), ERR_CORRUPT);
	assert_non_null(strstr(f->why.text, "chunk 0"));
}

struct keeper {
	uint8_t tag, lost;
	enum spool_fate other;
	unsigned asked, parts;
};

static enum spool_fate
keep(void *ctx, const uint8_t id[16], bool part, const struct manifest *m)
{
	struct keeper *k = ctx;

	(void)m;
	k->asked++;
	k->parts += part;
	return id[0] == k->tag ? SPOOL_STAYS : id[0] == k->lost ? SPOOL_LOST : k->other;
}

/* With the wrong key the start fails, names the file and loses nothing. */
static void
wrong_key(void **state)
{
	struct fixture *f = *state;
	struct keeper k = {.tag = 2, .other = SPOOL_GOES};

	open_spool(f, 0, secret);
	accept_delta(f, 1, 300, 7);
	accept_delta(f, 2, 300, 7);
	leave(f, 2);
	for (int i = 0; i < 2; i++) {
		open_spool(f, 0, i ? other_secret : NULL);
		assert_int_equal(spool_recover(f->s, keep, &k, &f->why), ERR_DENIED);
		assert_non_null(strstr(f->why.text, "key"));
		assert_int_equal(files_in(f->spool_dir), 3);
		assert_int_equal(verify(f, 2), ERR_DENIED);
	}
	open_spool(f, 0, secret);
	assert_int_equal(spool_recover(f->s, keep, &k, &f->why), ERR_OK);
	assert_int_equal(files_in(f->spool_dir), 2);
	assert_int_equal(verify(f, 2), ERR_OK);
}

/* --- after a restart */

static void
recover(void **state)
{
	struct fixture *f = *state;
	struct keeper k = {.tag = 2, .other = SPOOL_GOES};
	struct spool_part part;
	char path[160];

	open_spool(f, 0, NULL);
	accept_delta(f, 1, 100, 1);
	accept_delta(f, 2, 200, 2);
	leave(f, 2);
	leave(f, 3);
	/* Names that are nearly ours are somebody else's. */
	snprintf(path, sizeof(path), "%s/%032d.deltas", f->spool_dir, 2);
	assert_int_equal(file_write(path, "x", 1, 0600, &f->why), ERR_OK);
	/* Ours, and nothing in them. */
	assert_int_equal(file_write(path_of(f, 4, ".part"), "x", 1, 0600, &f->why), ERR_OK);
	assert_int_equal(file_write(path_of(f, 2, ".7.new"), "x", 1, 0600, &f->why), ERR_OK);
	assert_int_equal(rename(path_of(f, 3, ".part"), path), 0);
	assert_int_equal(file_write(path_of(f, 3, ".part"), "", 0, 0600, &f->why), ERR_OK);
	open_spool(f, 0, NULL);
	assert_int_equal(spool_recover(f->s, keep, &k, &f->why), ERR_OK);
	assert_int_equal(k.asked, 2 * 3);
	assert_int_equal(k.parts, 2);
	assert_int_equal(spool_used(f->s), 200 + OVER + 100 + OVER);
	assert_int_equal(files_in(f->spool_dir), 3);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(verify(f, 2), ERR_OK);
	spool_remove(f->s, task(2));
	assert_int_equal(spool_resume(f->s, task(2), device(2), &part, &f->why), ERR_OK);
	spool_drop(f->s, &part);
	assert_int_equal(spool_used(f->s), 0);
}

/* What no row explains is set aside and stays in the quota; a leftover goes only where everything else is explained. */
static void
recover_lost(void **state)
{
	struct fixture *f = *state;
	struct keeper k = {.tag = 2, .other = SPOOL_LEFTOVER};
	uint64_t count = 0;

	accept_delta(f, 1, 100, 1);
	accept_delta(f, 2, 200, 2);
	open_spool(f, 0, NULL);
	assert_int_equal(spool_recover(f->s, keep, &k, &f->why), ERR_OK);
	assert_int_equal(spool_lost_found(f->s), 0);
	assert_int_equal(files_in(f->spool_dir), 1);
	accept_delta(f, 1, 100, 1);
	accept_delta(f, 3, 300, 3);
	k.lost = 3;
	open_spool(f, 0, NULL);
	assert_int_equal(spool_recover(f->s, keep, &k, &f->why), ERR_OK);
	assert_int_equal(spool_lost_found(f->s), 1);
	assert_int_equal(files_in(f->spool_dir), 1);
	assert_int_equal(files_in(f->lost_dir), 2);
	assert_int_equal(spool_used(f->s), 100 + 200 + 300 + 3 * OVER);
	assert_int_equal(spool_lost_remove_device(f->s, device(3), &count, &f->why), ERR_OK);
	assert_int_equal(count, 1);
	assert_int_equal(files_in(f->lost_dir), 1);
	spool_lost_count(f->s);
	assert_int_equal(spool_used(f->s), 100 + 200 + 2 * OVER);
}

/* A quota that was lowered below what is there lets nothing in until rounds end. */
static void
recover_above_the_quota(void **state)
{
	struct fixture *f = *state;
	struct keeper k = {.tag = 2, .other = SPOOL_GOES};
	struct spool_part part;

	accept_delta(f, 2, 200, 2);
	open_spool(f, OVER + 100, NULL);
	assert_int_equal(spool_recover(f->s, keep, &k, &f->why), ERR_OK);
	assert_true(spool_full(f->s, 1));
	assert_int_equal(begin(f, 3, 1, &part), ERR_NOSPACE);
	spool_remove(f->s, task(2));
	assert_int_equal(begin(f, 3, 1, &part), ERR_OK);
	spool_drop(f->s, &part);
}

static void
recover_without_a_folder(void **state)
{
	struct fixture *f = *state;
	struct keeper k = {.tag = 2, .other = SPOOL_GOES};

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
	const struct spool_options o = {.dir = dir, .lost = f->lost_dir};
	assert_int_equal(spool_open(&s, &o, &f->why), ERR_LIMIT);
	assert_null(s);
	free(dir);
}

/* --- many at once */

struct upload {
	struct fixture *f;
	uint8_t tag;
	uint8_t manifest[MANIFEST_LEN], body[HASH_LEN + 100];
	unsigned failures;
};

static void *
upload(void *arg)
{
	struct upload *u = arg;
	struct spool_part part;
	uint8_t id[16];
	struct why why;

	memset(id, u->tag, sizeof(id));
	for (int i = 0; i < 60; i++) {
		enum err e = spool_begin(u->f->s, u->manifest, &part, &why);
		if (e == ERR_OK)
			e = spool_write(u->f->s, &part, u->body, sizeof(u->body), 0);
		if (e == ERR_OK && i % 3 == 0)
			e = spool_accept(u->f->s, &part, &why);
		u->failures += e != ERR_OK;
		if (i % 3 == 1)
			spool_leave(u->f->s, &part);
		spool_drop(u->f->s, &part);
		if (i % 3 == 0)
			spool_remove(u->f->s, id);
	}
	return NULL;
}

static void
uploads_at_once(void **state)
{
	struct fixture *f = *state;
	struct upload u[4];
	pthread_t ids[4];

	open_spool(f, 0, NULL);
	for (uint8_t i = 0; i < 4; i++) {
		struct sample s = sample(i, 100, 0);
		u[i] = (struct upload){.f = f, .tag = i};
		memcpy(u[i].manifest, s.manifest, MANIFEST_LEN);
		free(s.body);
	}
	for (uint8_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&ids[i], NULL, upload, &u[i]), 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(ids[i], NULL);
		assert_int_equal(u[i].failures, 0);
	}
	assert_int_equal(spool_used(f->s), 0);
	assert_int_equal(files_in(f->spool_dir), 0);
}

/* Two transfers of one task at once: whatever the order, one file, and its quota once. */
static void *
race(void *arg)
{
	struct upload *u = arg;
	struct spool_part part;
	struct why why;

	for (int i = 0; i < 200; i++) {
		enum err e = i % 2 ? spool_begin(u->f->s, u->manifest, &part, &why)
				   : spool_resume(u->f->s, task(1), device(1), &part, &why);
		if (e == ERR_OK)
			e = spool_write(u->f->s, &part, "abcd", 4, 0);
		u->failures += e != ERR_OK && e != ERR_AGAIN && e != ERR_NOTFOUND;
		if (i % 5)
			spool_leave(u->f->s, &part);
		else
			spool_drop(u->f->s, &part);
	}
	return NULL;
}

static void
one_task_at_once(void **state)
{
	struct fixture *f = *state;
	struct sample s = sample(1, 100, 0);
	struct upload u[2] = {{.f = f}, {.f = f}};
	pthread_t ids[2];

	for (int i = 0; i < 2; i++)
		memcpy(u[i].manifest, s.manifest, MANIFEST_LEN);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&ids[i], NULL, race, &u[i]), 0);
	for (int i = 0; i < 2; i++) {
		pthread_join(ids[i], NULL);
		assert_int_equal(u[i].failures, 0);
	}
	spool_expire(f->s, 0);
	assert_int_equal(spool_used(f->s), 0);
	assert_int_equal(files_in(f->spool_dir), 0);
	free(s.body);
}

/* What was checked on arrival is not hashed again, until somebody writes to the file. */
static void
trusted_until_written(void **state)
{
	struct fixture *f = *state;
	struct delta_file file;
	struct timespec tick = {0, 20000000};
	uint8_t byte = 0xff;

	accept_delta(f, 1, 300, 7);
	assert_int_equal(spool_read(f->s, task(1), NULL, &file, &f->why), ERR_OK);
	assert_true(spool_verified_holds(f->s->verified, task(1), file.fd));
	assert_int_equal(spool_verify(f->s, task(1), &file, &f->why), ERR_OK);
	delta_file_close(&file);
	/* The file system's clock goes in steps of some milliseconds. */
	nanosleep(&tick, NULL);
	int fd = open(path_of(f, 1, ".delta"), O_WRONLY);
	assert_int_equal(pwrite(fd, &byte, 1, OVER + 5), 1);
	close(fd);
	assert_int_equal(spool_read(f->s, task(1), NULL, &file, &f->why), ERR_OK);
	assert_false(spool_verified_holds(f->s->verified, task(1), file.fd));
	assert_int_equal(spool_verify(f->s, task(1), &file, &f->why), ERR_CORRUPT);
	assert_false(spool_verified_holds(f->s->verified, task(1), file.fd));
	delta_file_close(&file);
	spool_remove(f->s, task(1));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_SPOOL(trusted_until_written),
	    WITH_SPOOL(encrypted),
	    WITH_SPOOL(wrong_key),
	    WITH_SPOOL(recover),
	    WITH_SPOOL(recover_lost),
	    WITH_SPOOL(recover_above_the_quota),
	    WITH_SPOOL(recover_without_a_folder),
	    WITH_SPOOL(paths_too_long),
	    WITH_SPOOL(uploads_at_once),
	    WITH_SPOOL(one_task_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
