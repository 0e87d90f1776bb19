#ifndef SPOOL_FIXTURE_H
#define SPOOL_FIXTURE_H
/* A spool in a directory of its own, and deltas of one byte value: what tests of the spool share. */

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
#include "files_in.h"
#include "hex.h"
#include "merkle.h"
#include "spool.h"
#include "spool_inside.h"
#include "verified.h"

#define OVER \
	(SPOOLFILE_HEAD + HASH_LEN) /* a file of one chunk is so much larger than its payload */
#define QUOTA (1000 + 2 * OVER)

struct fixture {
	char dir[64], spool_dir[80], lost_dir[80];
	struct spool *s;
	struct why why;
};

static inline void
open_spool(struct fixture *f, uint64_t quota, const uint8_t *key)
{
	const struct spool_options o = {
	    .dir = f->spool_dir, .lost = f->lost_dir, .quota = quota, .secret = key};

	spool_close(f->s);
	f->s = NULL;
	assert_int_equal(spool_open(&f->s, &o, &f->why), ERR_OK);
}

static inline int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->dir, "/tmp/test_spool.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->spool_dir, sizeof(f->spool_dir), "%s/spool", f->dir);
	snprintf(f->lost_dir, sizeof(f->lost_dir), "%s/lost", f->dir);
	open_spool(f, QUOTA, NULL);
	*state = f;
	return 0;
}

static inline int
teardown(void **state)
{
	struct fixture *f = *state;

	spool_close(f->s);
	assert_int_equal(file_empty_dir(f->spool_dir, &f->why), ERR_OK);
	assert_int_equal(rmdir(f->spool_dir), 0);
	assert_int_equal(file_empty_dir(f->lost_dir, &f->why), ERR_OK);
	rmdir(f->lost_dir);
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

static inline const uint8_t *
task(uint8_t tag)
{
	static uint8_t id[16];

	memset(id, tag, sizeof(id));
	return id;
}

static inline const uint8_t *
device(uint8_t tag)
{
	static uint8_t id[32];

	memset(id, tag, sizeof(id));
	return id;
}

static inline struct manifest
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

static inline struct sample
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

static inline const char *
path_of(const struct fixture *f, uint8_t tag, const char *suffix)
{
	static char path[160];
	char hex[33];

	hex_encode(hex, task(tag), 16);
	snprintf(path, sizeof(path), "%s/%s%s", f->spool_dir, hex, suffix);
	return path;
}

static inline void
flip(const char *path, off_t at)
{
	uint8_t byte;
	int fd = open(path, O_RDWR);

	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= 0x10;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

static inline enum err
begin(struct fixture *f, uint8_t tag, uint64_t len, struct spool_part *part)
{
	struct manifest m = manifest_of(tag, len);
	uint8_t raw[MANIFEST_LEN];

	manifest_encode(raw, &m);
	return spool_begin(f->s, raw, part, &f->why);
}

/* A part, complete and synced. */
static inline void
write_part(struct fixture *f, uint8_t tag, uint64_t len, uint8_t fill, struct spool_part *part)
{
	struct sample s = sample(tag, len, fill);

	assert_int_equal(spool_begin(f->s, s.manifest, part, &f->why), ERR_OK);
	assert_int_equal(spool_write(f->s, part, s.body, s.bytes, 0), ERR_OK);
	assert_int_equal(spool_sync(f->s, part, &f->why), ERR_OK);
	free(s.body);
}

static inline void
accept_delta(struct fixture *f, uint8_t tag, uint64_t len, uint8_t fill)
{
	struct spool_part part;

	write_part(f, tag, len, fill, &part);
	assert_int_equal(spool_accept(f->s, &part, &f->why), ERR_OK);
	/* The end of every request drops its part; by then this one is no part any more. */
	spool_drop(f->s, &part);
}

static inline enum err
verify(struct fixture *f, uint8_t tag)
{
	struct delta_file file;

	enum err e = spool_read(f->s, task(tag), NULL, &file, &f->why);
	if (e == ERR_OK)
		e = delta_file_verify(&file, &f->why);
	delta_file_close(&file);
	return e;
}

static inline void
leave(struct fixture *f, uint8_t tag)
{
	struct spool_part part;

	assert_int_equal(begin(f, tag, 100, &part), ERR_OK);
	spool_leave(f->s, &part);
}

#define WITH_SPOOL(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

#endif
