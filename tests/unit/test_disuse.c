/* stages: gcc clang openssl address */
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

#include "clock_fixture.h"
#include "disuse.h"
#include "file.h"

/* Files that are kept for some days, under a clock that jumps. */

#define DAY 86400.0
#define DAYS 90

static int dir;
static char path[64];

/* As the parts do at a start. */
static bool
start(void)
{
	struct stat st;

	assert_int_equal(fstatat(dir, "file", &st, 0), 0);
	return disuse_is_within(&st, DAYS) || !disuse_is_over(dir, "file", DAYS);
}

static void
write_file(void)
{
	const struct timespec made[2] = {{.tv_sec = clock_unix()}, {.tv_sec = clock_unix()}};
	char name[80];

	snprintf(name, sizeof(name), "%s/file", path);
	assert_int_equal(file_write(name, "x", 1, 0600, NULL), ERR_OK);
	assert_int_equal(utimensat(dir, "file", made, 0), 0);
}

static void
begin(double at)
{
	wall = at;
	strcpy(path, "/tmp/test_disuse.XXXXXX");
	assert_non_null(mkdtemp(path));
	dir = open(path, O_RDONLY | O_DIRECTORY);
	assert_true(dir >= 0);
	write_file();
}

static void
end(void)
{
	close(dir);
	assert_int_equal(file_empty_dir(path, NULL), ERR_OK);
	assert_int_equal(rmdir(path), 0);
}

static void
jumps(void **state)
{
	static const double moves[] = {-12 * 365 * DAY, -DAY, 2 * DAY, 400 * DAY};
	const double right = 1800000000;

	(void)state;
	for (size_t i = 0; i < sizeof(moves) / sizeof(*moves); i++) {
		/* The clock of a start, again and again, and that of what was written. */
		begin(right);
		for (int k = 0; k < 6; k++) {
			wall = right + k * DAY + (k % 2 ? moves[i] : 0);
			assert_true(start());
			assert_true(start());
		}
		end();
		begin(right + moves[i]);
		for (int k = 0; k < 6; k++) {
			wall = right + k * DAY;
			assert_true(start());
		}
		end();
	}
}

static void
old(void **state)
{
	const double right = 1800000000;

	(void)state;
	begin(right);
	wall += DAYS * DAY;
	assert_true(start());
	wall += DAY;
	assert_true(start());
	wall += DAYS / 2 * DAY;
	assert_true(start());
	/* In use again: as new. */
	write_file();
	wall += (DAYS + 1) * DAY;
	assert_true(start());
	wall += (DAYS / 2 + 1) * DAY;
	assert_false(start());
	end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(jumps),
	    cmocka_unit_test(old),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
