/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "files_in.h"
#include "models_fixture.h"
#include "stop.h"

/* Piece by piece it is the same file; one that is not kept leaves nothing. */
static void
piece_by_piece(void **state)
{
	struct fixture *f = *state;
	uint8_t whole[32], id[32];
	struct models_file *file = NULL;

	put(f, 1, whole);
	assert_int_equal(models_delete(f->m, whole), ERR_OK);
	assert_int_equal(models_file_begin(f->m, &file, &f->why), ERR_OK);
	assert_int_equal(models_file_add(file, f->head.data, f->head.len, &f->why), ERR_OK);
	for (int i = 0; i < 6; i++)
		assert_int_equal(
		    models_file_add(file, &f->data[i], sizeof(float), &f->why), ERR_OK);
	assert_int_equal(models_file_end(file, id, &f->why), ERR_OK);
	assert_memory_equal(id, whole, 32);
	assert_int_equal(models_still(f->m, id, &f->why), ERR_CLOSED);
	assert_int_equal(models_file_keep(file, MODELS_KIND_MODEL, id, &f->why), ERR_OK);
	models_file_drop(file);
	assert_int_equal(models_still(f->m, id, &f->why), ERR_OK);
	file = NULL;
	assert_int_equal(models_file_begin(f->m, &file, &f->why), ERR_OK);
	assert_int_equal(models_file_add(file, f->head.data, f->head.len, &f->why), ERR_OK);
	models_file_drop(file);
	models_file_drop(NULL);
	assert_int_equal(files_in(f->dir), 1);
}

/* Each loop over bytes gives up once the program is to end, and leaves nothing. */
static void
told_to_end(void **state)
{
	struct fixture *f = *state;
	struct stop stop = {.sees_signals = false};
	struct models_map *map = NULL;
	uint8_t id[32], hash[32], none[32];

	put(f, 1, id);
	assert_int_equal(models_state_put(f->m, f->data, 6, hash, &f->why), ERR_OK);
	models_close(f->m);
	assert_int_equal(models_open(&f->m, f->dir, &f->why), ERR_OK);
	models_until(f->m, &stop);
	stop_ask(&stop);
	assert_int_equal(models_get(f->m, id, &map, &f->why), ERR_CLOSED);
	assert_int_equal(models_state_get(f->m, hash, f->data, 6, &f->why), ERR_CLOSED);
	assert_int_equal(models_state_check(f->m, hash, &f->why), ERR_CLOSED);
	assert_int_equal(models_state_map(f->m, hash, &map, &f->why), ERR_CLOSED);
	assert_int_equal(
	    models_put(f->m, f->head.data, f->head.len, f->data, sizeof(f->data), none, &f->why),
	    ERR_CLOSED);
	assert_int_equal(models_state_put(f->m, f->data, 5, none, &f->why), ERR_CLOSED);
	assert_int_equal(files_in(f->dir), 2);
	models_until(f->m, NULL);
	assert_int_equal(models_get(f->m, id, &map, &f->why), ERR_OK);
	models_map_release(map);
	assert_int_equal(models_state_check(f->m, hash, &f->why), ERR_OK);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_MODELS(piece_by_piece),
	    WITH_MODELS(told_to_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
