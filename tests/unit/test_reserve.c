/* stages: gcc openssl address thread */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "reserve.h"

#define BYTES 65536

static uint64_t
size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* Given up piece by piece until nothing is left, and made again; a smaller one lets go of the rest. */
static void
given_up_and_made_again(void **state)
{
	char dir[] = "/tmp/test_reserve.XXXXXX", path[64];
	struct reserve *r;
	unsigned pieces = 0;

	(void)state;
	log_set_level(LOG_LEVEL_ERROR);
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/reserve", dir);
	assert_int_equal(reserve_new(&r, path), ERR_OK);
	assert_false(reserve_give(r));
	reserve_keep(r, BYTES);
	assert_int_equal(reserve_held(r), BYTES);
	assert_int_equal(size_of(path), BYTES);
	for (uint64_t before = BYTES; reserve_give(r); before = reserve_held(r), pieces++)
		assert_true(reserve_held(r) < before && size_of(path) == reserve_held(r));
	assert_true(pieces > 8);
	assert_int_equal(access(path, F_OK), -1);
	reserve_keep(r, BYTES);
	reserve_free(r);
	assert_int_equal(reserve_new(&r, path), ERR_OK);
	assert_int_equal(reserve_held(r), BYTES);
	reserve_keep(r, BYTES / 4);
	assert_int_equal(size_of(path), BYTES / 4);
	reserve_keep(r, 0);
	assert_int_equal(access(path, F_OK), -1);
	reserve_free(r);
	assert_int_equal(rmdir(dir), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(given_up_and_made_again)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
