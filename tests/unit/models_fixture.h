#ifndef MODELS_FIXTURE_H
#define MODELS_FIXTURE_H
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
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

#define WITH_MODELS(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

#endif
