/* stages: gcc clang openssl address thread */
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
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cut.h"
#include "file.h"
#include "hex.h"
#include "modelfile.h"
#include "models.h"
#include "models_fixture.h"
#include "models_inside.h"
#include "stop.h"

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

/* Who was sent something else is believed so far that the file is hashed, once in a while; until that is done it counts as before. */
static void
doubted(void **state)
{
	struct fixture *f = *state;
	struct stamp now;
	struct stop stop = {.asked = true};
	uint8_t id[32], other[32], third[32];
	char path[160];

	put(f, 0.5f, id);
	put(f, 1.5f, other);
	put(f, 2.5f, third);
	assert_int_equal(models_doubt(f->m, id, &f->why), ERR_OK);
	path_of(f, other, "", path);
	flip(path);
	assert_int_equal(models_doubt(f->m, other, &f->why), ERR_CORRUPT);
	assert_int_equal(models_doubt(f->m, other, &f->why), ERR_OK);
	models_until(f->m, &stop);
	assert_int_equal(models_doubt(f->m, third, &f->why), ERR_CLOSED);
	/* Not so soon again. */
	assert_int_equal(models_doubt(f->m, id, &f->why), ERR_OK);
	path_of(f, third, "", path);
	assert_int_equal(stamp_of(path, &now, &f->why), ERR_OK);
	assert_int_equal(models_judged(f->m, third, "", &now), MODELS_SOUND);
	models_until(f->m, NULL);
}

/* A page of a map fails as those of a bad disk do, of which the file system says nothing. */
static void
spoil(const struct models_map *map)
{
	char path[] = "/tmp/test_models.XXXXXX";
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int empty = mkstemp(path);

	assert_true(empty >= 0);
	assert_int_equal(unlink(path), 0);
	assert_ptr_equal(
	    mmap((void *)(uintptr_t)map->data, page, PROT_READ, MAP_SHARED | MAP_FIXED, empty, 0),
	    map->data);
	close(empty);
}

/* What cannot be read is zeros, which are not taken for a model; it is no verdict on the file either. */
static void
a_disk_that_fails(void **state)
{
	struct fixture *f = *state;
	struct models_map *map = NULL, *again = NULL, *optimizer = NULL;
	uint8_t id[32], hash[32];

	/* Here, as cmocka has a handler of its own. */
	cut_survive();
	put(f, 0.5f, id);
	assert_int_equal(models_get(f->m, id, &map, &f->why), ERR_OK);
	assert_true(models_map_whole(map));
	assert_true(models_map_reads(map, 0, map->bytes));
	spoil(map);
	assert_int_equal(models_unchanged(f->m, map, &f->why), ERR_OK);
	assert_false(models_map_reads(map, map->bytes - 1, 1));
	assert_false(models_map_whole(map));
	assert_int_equal(models_unchanged(f->m, map, &f->why), ERR_IO);
	assert_non_null(strstr(f->why.text, "cannot be read whole"));
	/* Others get one of their own, which can be read. */
	assert_int_equal(models_get(f->m, id, &again, &f->why), ERR_OK);
	assert_ptr_not_equal(again, map);
	assert_int_equal(models_unchanged(f->m, again, &f->why), ERR_OK);
	models_map_release(again);
	models_map_release(map);
	assert_int_equal(models_state_put(f->m, f->data, 4, hash, &f->why), ERR_OK);
	assert_int_equal(models_state_map(f->m, hash, &optimizer, &f->why), ERR_OK);
	spoil(optimizer);
	assert_false(models_map_reads(optimizer, 0, 4));
	assert_int_equal(models_state_map(f->m, hash, &again, &f->why), ERR_OK);
	assert_ptr_not_equal(again, optimizer);
	models_map_release(again);
	models_map_release(optimizer);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_MODELS(changed_while_running),
	    WITH_MODELS(changed_state),
	    WITH_MODELS(doubted),
	    WITH_MODELS(a_disk_that_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
