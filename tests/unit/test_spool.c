/* stages: gcc openssl address thread */
#include "spool_fixture.h"
#include "stop.h"

static void
accepted_and_removed(void **state)
{
	struct fixture *f = *state;
	struct sample s = sample(1, 300, 7);
	struct delta_file file;
	uint8_t bytes[300];
	struct stat st;

	accept_delta(f, 1, 300, 7);
	assert_int_equal(spool_used(f->s), 300 + OVER);
	assert_int_equal(files_in(f->spool_dir), 1);
	assert_int_equal(stat(path_of(f, 1, ".delta"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(st.st_size, 300 + OVER);
	assert_int_equal(spool_read(f->s, task(1), s.manifest, &file, &f->why), ERR_OK);
	assert_int_equal(delta_file_read(&file, bytes, sizeof(bytes), file.leaf_bytes), ERR_OK);
	assert_int_equal(bytes[0] + bytes[299], 14);
	assert_int_equal(delta_file_verify(&file, &f->why), ERR_OK);
	struct stop stop = {.sees_signals = false};
	stop_ask(&stop);
	file.stop = &stop;
	assert_int_equal(delta_file_verify(&file, &f->why), ERR_CLOSED);
	assert_int_equal(
	    delta_file_read(&file, bytes, sizeof(bytes), file.leaf_bytes + 1), ERR_CORRUPT);
	delta_file_close(&file);
	/* The row must say the same. */
	s.manifest[255] ^= 1;
	assert_int_equal(spool_read(f->s, task(1), s.manifest, &file, &f->why), ERR_CORRUPT);
	assert_int_equal(file.fd, -1);
	spool_remove(f->s, task(1));
	assert_int_equal(spool_used(f->s), 0);
	assert_int_equal(files_in(f->spool_dir), 0);
	/* Removing what is gone gives nothing back. */
	spool_remove(f->s, task(1));
	assert_int_equal(spool_used(f->s), 0);
	free(s.body);
}

static void
dropped(void **state)
{
	struct fixture *f = *state;
	struct spool_part part;

	write_part(f, 1, 300, 7, &part);
	assert_int_equal(spool_used(f->s), 300 + OVER);
	assert_int_equal(files_in(f->spool_dir), 1);
	spool_drop(f->s, &part);
	assert_int_equal(spool_used(f->s), 0);
	assert_int_equal(files_in(f->spool_dir), 0);
	spool_drop(f->s, &part);
	assert_int_equal(spool_used(f->s), 0);
}

/* A new transfer of a task ends the older, incomplete one; many cost no more quota and disk than one. */
static void
superseded(void **state)
{
	struct fixture *f = *state;
	struct spool_part part[8];

	for (int i = 0; i < 8; i++) {
		assert_int_equal(begin(f, 1, QUOTA - OVER, &part[i]), ERR_OK);
		assert_int_equal(spool_write(f->s, &part[i], "12345", 5, 0), ERR_OK);
	}
	for (int i = 0; i < 8; i++) {
		assert_int_equal(
		    spool_write(f->s, &part[i], "6", 1, 5), i < 7 ? ERR_AGAIN : ERR_OK);
		assert_int_equal(spool_cut(f->s, &part[i], 6), i < 7 ? ERR_AGAIN : ERR_OK);
		assert_int_equal(
		    lseek(part[i].file.fd, 0, SEEK_END), i < 7 ? 0 : SPOOLFILE_HEAD + 6);
	}
	assert_int_equal(files_in(f->spool_dir), 1);
	assert_int_equal(spool_used(f->s), QUOTA);
	assert_int_equal(spool_sync(f->s, &part[0], &f->why), ERR_AGAIN);
	/* What ended is not to be taken up, nor does its end touch the newer one. */
	spool_leave(f->s, &part[0]);
	spool_drop(f->s, &part[1]);
	assert_int_equal(spool_sync(f->s, &part[7], &f->why), ERR_OK);
	/* A complete one is not ended any more. */
	assert_int_equal(begin(f, 1, 1, &part[0]), ERR_AGAIN);
	assert_int_equal(spool_resume(f->s, task(1), device(1), &part[0], &f->why), ERR_AGAIN);
	for (int i = 0; i < 8; i++)
		spool_drop(f->s, &part[i]);
	assert_int_equal(spool_used(f->s), 0);
}

/* What a broken transfer left is taken up by its device, and by nobody else. */
static void
taken_up(void **state)
{
	struct fixture *f = *state;
	struct sample s = sample(1, 300, 7);
	struct spool_part a, b;
	uint8_t bytes[100];

	assert_int_equal(spool_resume(f->s, task(1), device(1), &a, &f->why), ERR_NOTFOUND);
	assert_int_equal(spool_begin(f->s, s.manifest, &a, &f->why), ERR_OK);
	assert_int_equal(spool_write(f->s, &a, s.body, 100, 0), ERR_OK);
	spool_leave(f->s, &a);
	assert_int_equal(spool_used(f->s), 300 + OVER);
	assert_int_equal(spool_resume(f->s, task(1), device(2), &b, &f->why), ERR_NOTFOUND);
	assert_int_equal(spool_resume(f->s, task(1), device(1), &b, &f->why), ERR_OK);
	assert_memory_equal(b.file.manifest, s.manifest, MANIFEST_LEN);
	assert_int_equal(delta_file_read(&b.file, bytes, 100, 0), ERR_OK);
	assert_memory_equal(bytes, s.body, 100);
	assert_int_equal(delta_file_read(&b.file, bytes, 100, 1), ERR_CORRUPT);
	/* Taken up again, this one is ended in turn. */
	assert_int_equal(spool_resume(f->s, task(1), device(1), &a, &f->why), ERR_OK);
	assert_int_equal(spool_write(f->s, &b, s.body, 1, 0), ERR_AGAIN);
	spool_drop(f->s, &b);
	assert_int_equal(spool_write(f->s, &a, s.body + 100, s.bytes - 100, 100), ERR_OK);
	assert_int_equal(spool_write(f->s, &a, "x", 1, s.bytes), ERR_LIMIT);
	assert_int_equal(spool_sync(f->s, &a, &f->why), ERR_OK);
	assert_int_equal(spool_accept(f->s, &a, &f->why), ERR_OK);
	spool_drop(f->s, &a);
	assert_int_equal(verify(f, 1), ERR_OK);
	assert_int_equal(spool_used(f->s), 300 + OVER);
	assert_int_equal(spool_resume(f->s, task(1), device(1), &a, &f->why), ERR_NOTFOUND);
	free(s.body);
}

/* A part whose head is damaged is none. */
static void
damaged_head_of_a_part(void **state)
{
	struct fixture *f = *state;
	struct spool_part part;

	assert_int_equal(begin(f, 1, 300, &part), ERR_OK);
	spool_leave(f->s, &part);
	flip(path_of(f, 1, ".part"), 40);
	assert_int_equal(spool_resume(f->s, task(1), device(1), &part, &f->why), ERR_NOTFOUND);
	assert_int_equal(files_in(f->spool_dir), 0);
	assert_int_equal(spool_used(f->s), 0);
}

/* Parts go when their round is over or nobody comes for them. */
static void
forgotten_and_expired(void **state)
{
	static const uint8_t job[16], other[16] = {1};
	struct fixture *f = *state;
	struct spool_part live;

	open_spool(f, 0, NULL);
	for (uint8_t tag = 1; tag <= 4; tag++)
		leave(f, tag);
	assert_int_equal(spool_resume(f->s, task(1), device(1), &live, &f->why), ERR_OK);
	spool_forget(f->s, other, 9);
	assert_int_equal(files_in(f->spool_dir), 4);
	spool_forget(f->s, job, 2);
	assert_int_equal(files_in(f->spool_dir), 3);
	assert_int_equal(access(path_of(f, 2, ".part"), F_OK), -1);
	assert_int_equal(spool_used(f->s), 3 * (100 + OVER));
	spool_expire(f->s, 100000);
	assert_int_equal(files_in(f->spool_dir), 3);
	usleep(20000);
	spool_expire(f->s, 10);
	assert_int_equal(files_in(f->spool_dir), 1);
	spool_drop(f->s, &live);
	assert_int_equal(files_in(f->spool_dir), 0);
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
	assert_int_equal(begin(f, 3, 1, &more), ERR_NOSPACE);
	spool_drop(f->s, &more);
	assert_int_equal(spool_used(f->s), QUOTA);
	assert_int_equal(files_in(f->spool_dir), 2);
	spool_drop(f->s, &part);
	assert_false(spool_full(f->s, 1));
	assert_int_equal(begin(f, 3, 601, &more), ERR_NOSPACE);
	assert_int_equal(begin(f, 3, 600, &more), ERR_OK);
	/* Also while nobody sends it. */
	spool_leave(f->s, &more);
	assert_true(spool_full(f->s, 1));
	assert_int_equal(begin(f, 3, 600, &more), ERR_OK);
	spool_drop(f->s, &more);
	assert_int_equal(begin(f, 3, MANIFEST_PAYLOAD_MAX, &more), ERR_NOSPACE);
	assert_int_equal(spool_used(f->s), 400 + OVER);
}

#define CROWD 20

struct one {
	struct spool *s;
	struct sample sample;
	pthread_barrier_t *start;
	struct spool_part part;
	enum err e;
};

static void *
begin_one(void *arg)
{
	struct one *o = arg;

	pthread_barrier_wait(o->start);
	o->e = spool_begin(o->s, o->sample.manifest, &o->part, NULL);
	return NULL;
}

/* The quota is taken before the first byte: of twenty that begin together as many as fit. */
static void
quota_at_once(void **state)
{
	struct fixture *f = *state;
	pthread_t threads[CROWD];
	struct one ones[CROWD];
	pthread_barrier_t start;
	unsigned through = 0;

	open_spool(f, 6 * (100 + OVER) + 50, NULL);
	assert_int_equal(pthread_barrier_init(&start, NULL, CROWD), 0);
	for (uint8_t i = 0; i < CROWD; i++)
		ones[i] = (struct one){
		    .s = f->s, .sample = sample((uint8_t)(i + 1), 100, i), .start = &start};
	for (int i = 0; i < CROWD; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, begin_one, &ones[i]), 0);
	for (int i = 0; i < CROWD; i++) {
		pthread_join(threads[i], NULL);
		through += ones[i].e == ERR_OK;
		assert_true(ones[i].e == ERR_OK || ones[i].e == ERR_NOSPACE);
	}
	assert_int_equal(through, 6);
	assert_int_equal(spool_used(f->s), 6 * (100 + OVER));
	for (int i = 0; i < CROWD; i++) {
		spool_drop(f->s, &ones[i].part);
		free(ones[i].sample.body);
	}
	assert_int_equal(spool_used(f->s), 0);
	pthread_barrier_destroy(&start);
}

static void
accept_that_fails(void **state)
{
	struct fixture *f = *state;
	struct spool_part part;

	write_part(f, 1, 100, 1, &part);
	assert_int_equal(unlink(path_of(f, 1, ".part")), 0);
	assert_int_equal(spool_accept(f->s, &part, &f->why), ERR_NOTFOUND);
	assert_non_null(strstr(f->why.text, ".part"));
	spool_drop(f->s, &part);
	assert_int_equal(spool_used(f->s), 0);
	assert_int_equal(files_in(f->spool_dir), 0);
}

/* Left by a commit that failed after the rename. */
static void
accepted_twice(void **state)
{
	struct fixture *f = *state;

	accept_delta(f, 1, 100, 1);
	accept_delta(f, 1, 200, 2);
	assert_int_equal(files_in(f->spool_dir), 1);
	assert_int_equal(spool_used(f->s), 200 + OVER);
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

/* Every byte of a file is covered: by the head's tag, the root, or a leaf. */
static void
damage(void **state)
{
	static const struct {
		off_t at;
		const char *says;
	} places[] = {{0, "magic"}, {100, "head"}, {400, "reserved"}, {511, "head"},
	    {SPOOLFILE_HEAD, "root"}, {SPOOLFILE_HEAD + 95, "root"},
	    {SPOOLFILE_HEAD + 96, "chunk 0 of 3"},
	    {SPOOLFILE_HEAD + 96 + MANIFEST_CHUNK, "chunk 1 of 3"},
	    {SPOOLFILE_HEAD + 96 + 2 * MANIFEST_CHUNK + 9, "chunk 2 of 3"}};
	struct fixture *f = *state;
	struct delta_file file;

	open_spool(f, 0, NULL);
	assert_int_equal(spool_read(f->s, task(1), NULL, &file, &f->why), ERR_NOTFOUND);
	assert_int_equal(file.fd, -1);
	accept_delta(f, 1, 2 * MANIFEST_CHUNK + 10, 1);
	assert_int_equal(verify(f, 1), ERR_OK);
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		flip(path_of(f, 1, ".delta"), places[i].at);
		assert_int_equal(verify(f, 1), ERR_CORRUPT);
		if (!strstr(f->why.text, places[i].says))
			fail_msg("%s: %s", places[i].says, f->why.text);
		flip(path_of(f, 1, ".delta"), places[i].at);
	}
	for (off_t len = OVER; len < OVER + 3 * MANIFEST_CHUNK; len += MANIFEST_CHUNK) {
		assert_int_equal(truncate(path_of(f, 1, ".delta"), len), 0);
		assert_int_equal(spool_read(f->s, task(1), NULL, &file, &f->why), ERR_CORRUPT);
		assert_int_equal(file.fd, -1);
	}
	assert_non_null(strstr(f->why.text, path_of(f, 1, ".delta")));
}

/* A part of a payload is read against what the device signed, wherever it begins and ends, and what is damaged is not read. */
static void
a_part_of_a_payload(void **state)
{
	struct fixture *f = *state;
	static const uint8_t secret[32] = {7};
	const uint64_t len = 2 * (uint64_t)MANIFEST_CHUNK + 1000;
	const uint64_t from[] = {
	    0, 1, MANIFEST_CHUNK - 1, MANIFEST_CHUNK, 2 * (uint64_t)MANIFEST_CHUNK + 999, len};
	struct delta_key key;
	uint8_t *got = malloc(len);

	assert_non_null(got);
	delta_file_key(&key, secret);
	for (int sealed = 0; sealed < 2; sealed++) {
		struct sample s = sample(3, len, 9);
		struct delta_file d;
		int fd = open(f->dir, O_TMPFILE | O_RDWR, 0600);
		assert_true(fd >= 0);
		assert_int_equal(
		    delta_file_create(&d, fd, s.manifest, sealed ? &key : NULL, &f->why), ERR_OK);
		assert_int_equal(delta_file_write(&d, s.body, s.bytes, 0), ERR_OK);
		for (size_t i = 0; i < sizeof(from) / sizeof(*from); i++) {
			memset(got, 0, len);
			assert_int_equal(
			    delta_file_payload(&d, got, len - from[i], from[i], &f->why), ERR_OK);
			assert_memory_equal(got, s.body + s.leaf_bytes + from[i], len - from[i]);
		}
		assert_int_equal(delta_file_payload(&d, got, 1, len, &f->why), ERR_CORRUPT);
		/* One byte of the second chunk, then one of the leaves. */
		uint8_t byte = 8;
		assert_int_equal(
		    delta_file_write(&d, &byte, 1, s.leaf_bytes + MANIFEST_CHUNK + 5), ERR_OK);
		assert_int_equal(delta_file_payload(&d, got, MANIFEST_CHUNK, 0, &f->why), ERR_OK);
		assert_int_equal(
		    delta_file_payload(&d, got, 2, MANIFEST_CHUNK - 1, &f->why), ERR_CORRUPT);
		assert_int_equal(
		    delta_file_payload(&d, got, 1000, 2 * MANIFEST_CHUNK, &f->why), ERR_OK);
		byte = (uint8_t)(s.body[0] ^ 1);
		assert_int_equal(delta_file_write(&d, &byte, 1, 0), ERR_OK);
		assert_int_equal(delta_file_payload(&d, got, 1, 0, &f->why), ERR_CORRUPT);
		assert_int_equal(ftruncate(fd, SPOOLFILE_HEAD + MANIFEST_CHUNK), 0);
		assert_int_equal(delta_file_payload(&d, got, 1, 0, &f->why), ERR_CORRUPT);
		delta_file_close(&d);
		free(s.body);
	}
	free(got);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_SPOOL(accepted_and_removed),
	    WITH_SPOOL(dropped),
	    WITH_SPOOL(quota),
	    WITH_SPOOL(quota_at_once),
	    WITH_SPOOL(superseded),
	    WITH_SPOOL(taken_up),
	    WITH_SPOOL(damaged_head_of_a_part),
	    WITH_SPOOL(forgotten_and_expired),
	    WITH_SPOOL(accept_that_fails),
	    WITH_SPOOL(accepted_twice),
	    WITH_SPOOL(names_are_synced),
	    WITH_SPOOL(damage),
	    WITH_SPOOL(a_part_of_a_payload),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
