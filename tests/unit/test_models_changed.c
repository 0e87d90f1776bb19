/* Files of models and states that somebody changes while this process runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "hex.h"
#include "modelfile.h"
#include "models.h"
#include "models_inside.h"

struct fixture {
	char dir[64];
	struct models *m;
	struct why why;
	struct buf head;
	float data[6];
};

/* A model of two tensors, 2 x 2 and 2, with the given first weight. */
static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct tensor_table t = {.items = NULL};

	assert_non_null(f);
	strcpy(f->dir, "/tmp/test_models.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	assert_int_equal(models_open(&f->m, f->dir, &f->why), ERR_OK);
	assert_int_equal(tensor_table_add(&t, "fc.weight", (uint64_t[]){2, 2}, 2, &f->why), ERR_OK);
	assert_int_equal(tensor_table_add(&t, "fc.bias", (uint64_t[]){2}, 1, &f->why), ERR_OK);
	buf_init(&f->head, 65536);
	assert_int_equal(modelfile_header(&f->head, &t, NULL), ERR_OK);
	tensor_table_deinit(&t);
	for (int i = 0; i < 6; i++)
		f->data[i] = (float)i;
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	models_close(f->m);
	buf_deinit(&f->head);
	assert_int_equal(file_empty_dir(f->dir, &f->why), ERR_OK);
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

static void
put(struct fixture *f, float first, uint8_t id[32])
{
	f->data[0] = first;
	assert_int_equal(
	    models_put(f->m, f->head.data, f->head.len, f->data, sizeof(f->data), id, &f->why),
	    ERR_OK);
}

static void
path_of(const struct fixture *f, const uint8_t id[32], const char *suffix, char out[160])
{
	char hex[65];

	hex_encode(hex, id, 32);
	snprintf(out, 160, "%s/%s%s", f->dir, hex, suffix);
}

/* Turns one bit and dates the file back, as nobody but a disk would. */
static void
flip(const char *path)
{
	struct stat st, now;
	uint8_t byte;

	assert_int_equal(stat(path, &st), 0);
	int fd = open(path, O_RDWR);
	assert_int_equal(pread(fd, &byte, 1, st.st_size - 1), 1);
	byte ^= 1;
	/* The file system's clock goes by steps. */
	do {
		assert_int_equal(pwrite(fd, &byte, 1, st.st_size - 1), 1);
		const struct timespec times[2] = {st.st_atim, st.st_mtim};
		assert_int_equal(futimens(fd, times), 0);
		assert_int_equal(fstat(fd, &now), 0);
	} while (
	    now.st_ctim.tv_sec == st.st_ctim.tv_sec && now.st_ctim.tv_nsec == st.st_ctim.tv_nsec);
	close(fd);
}

/* A file that somebody changes while this process runs is hashed again before it is used, also while others have it. */
static void
changed_while_running(void **state)
{
	struct fixture *f = *state;
	struct models_map *map = NULL, *again = NULL;
	char path[160], aside[180];
	uint8_t id[32];

	put(f, 0.5f, id);
	path_of(f, id, "", path);
	assert_int_equal(models_get(f->m, id, &map, &f->why), ERR_OK);
	assert_int_equal(models_unchanged(f->m, map, &f->why), ERR_OK);
	flip(path);
	assert_int_equal(models_get(f->m, id, &again, &f->why), ERR_CORRUPT);
	assert_int_equal(models_unchanged(f->m, map, &f->why), ERR_CORRUPT);
	flip(path);
	assert_int_equal(models_get(f->m, id, &again, &f->why), ERR_OK);
	models_map_release(again);
	assert_int_equal(models_unchanged(f->m, map, &f->why), ERR_OK);
	/* Gone, and back. */
	snprintf(aside, sizeof(aside), "%s.aside", path);
	assert_int_equal(rename(path, aside), 0);
	assert_int_equal(models_get(f->m, id, &again, &f->why), ERR_NOTFOUND);
	assert_int_equal(rename(aside, path), 0);
	assert_int_equal(models_get(f->m, id, &again, &f->why), ERR_OK);
	models_map_release(again);
	assert_int_equal(truncate(path, 100), 0);
	assert_int_equal(models_get(f->m, id, &again, &f->why), ERR_CORRUPT);
	models_map_release(map);
	assert_int_equal(models_get(f->m, id, &again, &f->why), ERR_CORRUPT);
}

/* The same of optimizer states. */
static void
changed_state(void **state)
{
	static const float numbers[4] = {1, 2, 3, 4};
	struct fixture *f = *state;
	struct models_map *map = NULL, *again = NULL;
	char path[160];
	uint8_t hash[32];

	assert_int_equal(models_state_put(f->m, numbers, 4, hash, &f->why), ERR_OK);
	path_of(f, hash, ".state", path);
	assert_int_equal(models_state_map(f->m, hash, &map, &f->why), ERR_OK);
	flip(path);
	assert_int_equal(models_state_map(f->m, hash, &again, &f->why), ERR_CORRUPT);
	flip(path);
	assert_int_equal(models_state_map(f->m, hash, &again, &f->why), ERR_OK);
	models_map_release(again);
	models_map_release(map);
}

/* Who was sent something else is believed so far that the file is hashed: once in a while. */
static void
doubted(void **state)
{
	struct fixture *f = *state;
	struct models_map *map = NULL;
	uint8_t id[32], other[32];

	put(f, 0.5f, id);
	put(f, 1.5f, other);
	assert_true(models_doubt(f->m, id));
	assert_false(models_doubt(f->m, id));
	assert_true(models_doubt(f->m, other));
	assert_int_equal(models_get(f->m, id, &map, &f->why), ERR_OK);
	models_map_release(map);
	assert_false(models_doubt(f->m, id));
}

#define WITH_MODELS(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_MODELS(changed_while_running),
	    WITH_MODELS(changed_state),
	    WITH_MODELS(doubted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
