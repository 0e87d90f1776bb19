#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "file.h"
#include "hex.h"
#include "merkle.h"
#include "spool.h"
#include "spool_state.h"
#include "spool_trust.h"

#define OVER \
	(SPOOLFILE_HEAD + HASH_LEN) /* a file of one chunk is so much larger than its payload */
#define QUOTA (1000 + 2 * OVER)

static const uint8_t secret[32] = {1, 2, 3}, other_secret[32] = {4};

struct fixture {
	char dir[64], spool_dir[80];
	struct spool *s;
	struct why why;
};

static void
open_spool(struct fixture *f, uint64_t quota, const uint8_t *key)
{
	const struct spool_options o = {.dir = f->spool_dir, .quota = quota, .secret = key};

	spool_close(f->s);
	f->s = NULL;
	assert_int_equal(spool_open(&f->s, &o, &f->why), ERR_OK);
}

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->dir, "/tmp/test_spool.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->spool_dir, sizeof(f->spool_dir), "%s/spool", f->dir);
	open_spool(f, QUOTA, NULL);
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

static const uint8_t *
task(uint8_t tag)
{
	static uint8_t id[16];

	memset(id, tag, sizeof(id));
	return id;
}

static const uint8_t *
device(uint8_t tag)
{
	static uint8_t id[32];

	memset(id, tag, sizeof(id));
	return id;
}

static struct manifest
manifest_of(uint8_t tag, uint64_t len)
{
	struct manifest m = {
	    .round = tag, .payload_bytes = len, .elements = 1, .examples = 1, .steps = 1};

	memcpy(m.task, task(tag), 16);
	memcpy(m.device, device(tag), 32);
	return m;
}

/* A delta of `len` bytes of value `fill`, by device `tag`, for task `tag` of round `tag`. */
struct sample {
	uint8_t manifest[MANIFEST_LEN], *body;
	uint64_t leaf_bytes, bytes;
};

static struct sample
sample(uint8_t tag, uint64_t len, uint8_t fill)
{
	struct manifest m = manifest_of(tag, len);
	struct sample s = {.leaf_bytes = manifest_chunks(len) * HASH_LEN};

	s.bytes = manifest_body_bytes(len);
	s.body = malloc(s.bytes);
	assert_non_null(s.body);
	memset(s.body + s.leaf_bytes, fill, len);
	for (uint64_t i = 0; i * MANIFEST_CHUNK < len; i++) {
		uint64_t left = len - i * MANIFEST_CHUNK;
		merkle_leaf(s.body + i * HASH_LEN, s.body + s.leaf_bytes + i * MANIFEST_CHUNK,
		    left < MANIFEST_CHUNK ? left : MANIFEST_CHUNK);
	}
	merkle_root(m.root, s.body, s.leaf_bytes / HASH_LEN);
	manifest_encode(s.manifest, &m);
	return s;
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

static const char *
path_of(const struct fixture *f, uint8_t tag, const char *suffix)
{
	static char path[160];
	char hex[33];

	hex_encode(hex, task(tag), 16);
	snprintf(path, sizeof(path), "%s/%s%s", f->spool_dir, hex, suffix);
	return path;
}

static void
flip(const char *path, off_t at)
{
	uint8_t byte;
	int fd = open(path, O_RDWR);

	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= 0x10;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

static enum err
begin(struct fixture *f, uint8_t tag, uint64_t len, struct spool_part *part)
{
	struct manifest m = manifest_of(tag, len);
	uint8_t raw[MANIFEST_LEN];

	manifest_encode(raw, &m);
	return spool_begin(f->s, raw, part, &f->why);
}

/* A part, complete and synced. */
static void
write_part(struct fixture *f, uint8_t tag, uint64_t len, uint8_t fill, struct spool_part *part)
{
	struct sample s = sample(tag, len, fill);

	assert_int_equal(spool_begin(f->s, s.manifest, part, &f->why), ERR_OK);
	assert_int_equal(spool_write(f->s, part, s.body, s.bytes, 0), ERR_OK);
	assert_int_equal(spool_sync(f->s, part, &f->why), ERR_OK);
	free(s.body);
}

static void
accept_delta(struct fixture *f, uint8_t tag, uint64_t len, uint8_t fill)
{
	struct spool_part part;

	write_part(f, tag, len, fill, &part);
	assert_int_equal(spool_accept(f->s, &part, &f->why), ERR_OK);
	/* The end of every request drops its part; by then this one is no part any more. */
	spool_drop(f->s, &part);
}

static enum err
verify(struct fixture *f, uint8_t tag)
{
	struct delta_file file;

	enum err e = spool_read(f->s, task(tag), NULL, &file, &f->why);
	if (e == ERR_OK)
		e = delta_file_verify(&file, &f->why);
	delta_file_close(&file);
	return e;
}

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
	assert_int_equal(files(f), 1);
	assert_int_equal(stat(path_of(f, 1, ".delta"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(st.st_size, 300 + OVER);
	assert_int_equal(spool_read(f->s, task(1), s.manifest, &file, &f->why), ERR_OK);
	assert_int_equal(delta_file_read(&file, bytes, sizeof(bytes), file.leaf_bytes), ERR_OK);
	assert_int_equal(bytes[0] + bytes[299], 14);
	assert_int_equal(delta_file_verify(&file, &f->why), ERR_OK);
	assert_int_equal(
	    delta_file_read(&file, bytes, sizeof(bytes), file.leaf_bytes + 1), ERR_CORRUPT);
	delta_file_close(&file);
	/* The row must say the same. */
	s.manifest[255] ^= 1;
	assert_int_equal(spool_read(f->s, task(1), s.manifest, &file, &f->why), ERR_CORRUPT);
	assert_int_equal(file.fd, -1);
	spool_remove(f->s, task(1));
	assert_int_equal(spool_used(f->s), 0);
	assert_int_equal(files(f), 0);
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
	assert_int_equal(files(f), 1);
	spool_drop(f->s, &part);
	assert_int_equal(spool_used(f->s), 0);
	assert_int_equal(files(f), 0);
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
	assert_int_equal(files(f), 1);
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
	assert_int_equal(files(f), 0);
	assert_int_equal(spool_used(f->s), 0);
}

static void
leave(struct fixture *f, uint8_t tag)
{
	struct spool_part part;

	assert_int_equal(begin(f, tag, 100, &part), ERR_OK);
	spool_leave(f->s, &part);
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
	assert_int_equal(files(f), 4);
	spool_forget(f->s, job, 2);
	assert_int_equal(files(f), 3);
	assert_int_equal(access(path_of(f, 2, ".part"), F_OK), -1);
	assert_int_equal(spool_used(f->s), 3 * (100 + OVER));
	spool_expire(f->s, 100000);
	assert_int_equal(files(f), 3);
	usleep(20000);
	spool_expire(f->s, 10);
	assert_int_equal(files(f), 1);
	spool_drop(f->s, &live);
	assert_int_equal(files(f), 0);
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
	assert_int_equal(files(f), 2);
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
	assert_int_equal(files(f), 0);
}

/* Left by a commit that failed after the rename. */
static void
accepted_twice(void **state)
{
	struct fixture *f = *state;

	accept_delta(f, 1, 100, 1);
	accept_delta(f, 1, 200, 2);
	assert_int_equal(files(f), 1);
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
	uint8_t tag;
	unsigned asked, parts;
};

static bool
keep(void *ctx, const uint8_t id[16], const struct manifest *m)
{
	struct keeper *k = ctx;

	k->asked++;
	k->parts += m != NULL;
	return id[0] == k->tag;
}

/* With the wrong key the start fails, names the file and loses nothing. */
static void
wrong_key(void **state)
{
	struct fixture *f = *state;
	struct keeper k = {.tag = 2};

	open_spool(f, 0, secret);
	accept_delta(f, 1, 300, 7);
	accept_delta(f, 2, 300, 7);
	leave(f, 2);
	for (int i = 0; i < 2; i++) {
		open_spool(f, 0, i ? other_secret : NULL);
		assert_int_equal(spool_recover(f->s, keep, &k, &f->why), ERR_DENIED);
		assert_non_null(strstr(f->why.text, "key"));
		assert_int_equal(files(f), 3);
		assert_int_equal(verify(f, 2), ERR_DENIED);
	}
	open_spool(f, 0, secret);
	assert_int_equal(spool_recover(f->s, keep, &k, &f->why), ERR_OK);
	assert_int_equal(files(f), 2);
	assert_int_equal(verify(f, 2), ERR_OK);
}

/* --- after a restart */

static void
recover(void **state)
{
	struct fixture *f = *state;
	struct keeper k = {.tag = 2};
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
	assert_int_equal(file_write(path_of(f, 4, ".7.part"), "x", 1, 0600, &f->why), ERR_OK);
	assert_int_equal(rename(path_of(f, 3, ".part"), path), 0);
	assert_int_equal(file_write(path_of(f, 3, ".part"), "", 0, 0600, &f->why), ERR_OK);
	open_spool(f, 0, NULL);
	assert_int_equal(spool_recover(f->s, keep, &k, &f->why), ERR_OK);
	assert_int_equal(k.asked, 2 * 3);
	assert_int_equal(k.parts, 2);
	assert_int_equal(spool_used(f->s), 200 + OVER + 100 + OVER);
	assert_int_equal(files(f), 3);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(verify(f, 2), ERR_OK);
	spool_remove(f->s, task(2));
	assert_int_equal(spool_resume(f->s, task(2), device(2), &part, &f->why), ERR_OK);
	spool_drop(f->s, &part);
	assert_int_equal(spool_used(f->s), 0);
}

/* Version 1.0 kept the bare payload. */
static void
upgraded(void **state)
{
	struct fixture *f = *state;
	const uint64_t len = MANIFEST_CHUNK + 77;
	struct sample s = sample(1, len, 9);
	const char *path = path_of(f, 1, ".delta");
	struct stat before, after;

	for (int sealed = 0; sealed < 2; sealed++) {
		open_spool(f, 0, sealed ? secret : NULL);
		assert_int_equal(
		    file_write(path, s.body + s.leaf_bytes, len, 0600, &f->why), ERR_OK);
		assert_int_equal(verify(f, 1), ERR_CORRUPT);
		assert_int_equal(spool_upgrade(f->s, task(1), s.manifest, &f->why), ERR_OK);
		assert_int_equal(verify(f, 1), ERR_OK);
		assert_int_equal(files(f), 1);
		assert_int_equal(holds(path, s.body, s.leaf_bytes), !sealed);
		/* What is as it should be stays. */
		assert_int_equal(stat(path, &before), 0);
		assert_int_equal(spool_upgrade(f->s, task(1), s.manifest, &f->why), ERR_OK);
		assert_int_equal(stat(path, &after), 0);
		assert_int_equal(before.st_ino, after.st_ino);
	}
	/* So does what is damaged, has another length, or is not there. */
	s.body[s.leaf_bytes + 5] ^= 1;
	assert_int_equal(file_write(path, s.body + s.leaf_bytes, len, 0600, &f->why), ERR_OK);
	assert_int_equal(spool_upgrade(f->s, task(1), s.manifest, &f->why), ERR_OK);
	assert_int_equal(verify(f, 1), ERR_CORRUPT);
	assert_int_equal(truncate(path, (off_t)len - 1), 0);
	assert_int_equal(spool_upgrade(f->s, task(1), s.manifest, &f->why), ERR_OK);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(after.st_size, len - 1);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(spool_upgrade(f->s, task(1), s.manifest, &f->why), ERR_OK);
	assert_int_equal(files(f), 0);
	free(s.body);
}

/* A quota that was lowered below what is there lets nothing in until rounds end. */
static void
recover_above_the_quota(void **state)
{
	struct fixture *f = *state;
	struct keeper k = {.tag = 2};
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
	const struct spool_options o = {.dir = dir};
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
	assert_int_equal(files(f), 0);
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
	assert_int_equal(files(f), 0);
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
	assert_true(spool_trust_holds(f->s->trust, task(1), file.fd));
	assert_int_equal(spool_verify(f->s, task(1), &file, &f->why), ERR_OK);
	delta_file_close(&file);
	/* The file system's clock goes in steps of some milliseconds. */
	nanosleep(&tick, NULL);
	int fd = open(path_of(f, 1, ".delta"), O_WRONLY);
	assert_int_equal(pwrite(fd, &byte, 1, OVER + 5), 1);
	close(fd);
	assert_int_equal(spool_read(f->s, task(1), NULL, &file, &f->why), ERR_OK);
	assert_false(spool_trust_holds(f->s->trust, task(1), file.fd));
	assert_int_equal(spool_verify(f->s, task(1), &file, &f->why), ERR_CORRUPT);
	assert_false(spool_trust_holds(f->s->trust, task(1), file.fd));
	delta_file_close(&file);
	spool_remove(f->s, task(1));
}

#define WITH_SPOOL(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_SPOOL(accepted_and_removed),
	    WITH_SPOOL(trusted_until_written),
	    WITH_SPOOL(dropped),
	    WITH_SPOOL(quota),
	    WITH_SPOOL(superseded),
	    WITH_SPOOL(taken_up),
	    WITH_SPOOL(damaged_head_of_a_part),
	    WITH_SPOOL(forgotten_and_expired),
	    WITH_SPOOL(accept_that_fails),
	    WITH_SPOOL(accepted_twice),
	    WITH_SPOOL(names_are_synced),
	    WITH_SPOOL(damage),
	    WITH_SPOOL(encrypted),
	    WITH_SPOOL(wrong_key),
	    WITH_SPOOL(recover),
	    WITH_SPOOL(upgraded),
	    WITH_SPOOL(recover_above_the_quota),
	    WITH_SPOOL(recover_without_a_folder),
	    WITH_SPOOL(paths_too_long),
	    WITH_SPOOL(uploads_at_once),
	    WITH_SPOOL(one_task_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
