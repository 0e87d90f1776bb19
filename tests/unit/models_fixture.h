#ifndef MODELS_FIXTURE_H
#define MODELS_FIXTURE_H
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "file.h"
#include "hex.h"
#include "modelfile.h"
#include "models.h"

/* A folder of models, and what one of them is made of. */
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

static inline void
path_of(const struct fixture *f, const uint8_t id[32], const char *suffix, char out[160])
{
	char hex[65];

	hex_encode(hex, id, 32);
	snprintf(out, 160, "%s/%s%s", f->dir, hex, suffix);
}

/* Turns one bit and dates the file back, as nobody but a disk would. */
static inline void
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

#define WITH_MODELS(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

#endif
