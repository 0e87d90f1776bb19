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
#include "models_fixture.h"
#include "models_inside.h"

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
