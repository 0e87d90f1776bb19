/* stages: gcc clang openssl address */
/* Files that a device keeps of a job: written part by part, and whatever happens to one of their bytes is found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codec_elements.h"
#include "err.h"
#include "file.h"
#include "hash.h"
#include "kept.h"

#define COUNT 40001 /* more than one tile, and no whole number of them */

static char dir[64], path[80];

static int
set_up(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/test_kept.XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	return file_remove_dir(dir, NULL) != ERR_OK;
}

static float *
numbers(void)
{
	float *out = malloc(COUNT * sizeof(*out));

	assert_non_null(out);
	for (size_t i = 0; i < COUNT; i++)
		out[i] = (float)i / 3;
	return out;
}

/* The bytes are those of head, body and hash over both. */
static void
whole(void **state)
{
	const struct devicefile file = {.kind = DEVICEFILE_VARIATE, .count = COUNT, .round = 9};
	float *in = numbers(), part[9];
	const struct codec_elements from = codec_elements_in(in);
	uint8_t head[DEVICEFILE_HEAD_MAX], hash[HASH_LEN];
	struct kept k;
	char *data;
	size_t len, before = devicefile_head(file.kind);

	(void)state;
	assert_int_equal(kept_write(&file, &from, path, NULL), ERR_OK);
	assert_int_equal(file_read(path, 1 << 20, &data, &len, NULL), ERR_OK);
	assert_int_equal(len, devicefile_bytes(file.kind, COUNT));
	devicefile_encode(&file, head);
	assert_memory_equal(data, head, before);
	assert_memory_equal(data + before, in, COUNT * sizeof(float));
	hash_sha256(hash, data, len - HASH_LEN);
	assert_memory_equal(data + len - HASH_LEN, hash, HASH_LEN);
	assert_int_equal(kept_open(&k, DEVICEFILE_VARIATE, path, NULL), ERR_OK);
	assert_int_equal(k.file.round, 9);
	const struct codec_elements back = kept_values(&k);
	assert_int_equal(back.read(back.context, COUNT - 7, 7, part), ERR_OK);
	assert_memory_equal(part, in + COUNT - 7, 7 * sizeof(*part));
	assert_int_not_equal(back.read(back.context, COUNT, 9, part), ERR_OK);
	kept_close(&k);
	assert_int_equal(kept_open(&k, DEVICEFILE_LOCAL, path, NULL), ERR_CORRUPT);
	free(data);
	free(in);
}

/* Any bit of any byte, any length. */
static void
damage(void **state)
{
	const struct devicefile file = {.kind = DEVICEFILE_RESIDUAL, .count = 5};
	const float in[5] = {1, 2, 3, 4, 5};
	const struct codec_elements from = codec_elements_in(in);
	struct why why = {""};
	struct kept k;
	char *data;
	size_t len;

	(void)state;
	assert_int_equal(kept_open(&k, file.kind, path, NULL), ERR_NOTFOUND);
	assert_int_equal(kept_write(&file, &from, path, NULL), ERR_OK);
	assert_int_equal(file_read(path, 1000, &data, &len, NULL), ERR_OK);
	int fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	for (size_t bit = 0; bit < 8 * len; bit++) {
		uint8_t byte = (uint8_t)data[bit / 8] ^ (uint8_t)(1 << bit % 8);
		assert_int_equal(file_pwrite(fd, &byte, 1, bit / 8), ERR_OK);
		assert_int_equal(kept_open(&k, file.kind, path, &why), ERR_CORRUPT);
		assert_non_null(strstr(why.text, path));
		assert_int_equal(file_pwrite(fd, &data[bit / 8], 1, bit / 8), ERR_OK);
	}
	assert_int_equal(kept_open(&k, file.kind, path, NULL), ERR_OK);
	kept_close(&k);
	for (size_t n = 0; n < len; n++) {
		assert_int_equal(ftruncate(fd, (off_t)n), 0);
		assert_int_equal(kept_open(&k, file.kind, path, NULL), ERR_CORRUPT);
	}
	close(fd);
	free(data);
}

static enum err
broken_read(void *context, uint64_t first, size_t count, float *out)
{
	(void)context;
	memset(out, 0, count * sizeof(*out));
	return first > 0 ? ERR_IO : ERR_OK;
}

/* The older one stays where the newer one cannot be finished, and nothing lies beside it. */
static void
unfinished(void **state)
{
	const struct devicefile file = {.kind = DEVICEFILE_VARIATE, .count = COUNT};
	float *in = numbers();
	const struct codec_elements from = codec_elements_in(in), broken = {broken_read, NULL};
	struct kept k;

	(void)state;
	assert_int_equal(kept_write(&file, &from, path, NULL), ERR_OK);
	assert_int_equal(kept_write(&file, &broken, path, NULL), ERR_IO);
	assert_int_equal(kept_open(&k, file.kind, path, NULL), ERR_OK);
	kept_close(&k);
	unlink(path);
	assert_int_equal(rmdir(dir), 0);
	free(in);
	assert_non_null(mkdtemp(strcpy(dir, "/tmp/test_kept.XXXXXX")));
}

int
main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {WITH(whole), WITH(damage), WITH(unfinished)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
