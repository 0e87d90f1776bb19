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

#include "clock.h"
#include "disuse.h"
#include "file.h"

/* Files that are kept for some days, under a clock that jumps. */

#define DAY ((int64_t)86400)
#define DAYS 90

static int64_t now;

int64_t
clock_unix(void)
{
	return now;
}

double
clock_wall(void)
{
	return (double)now;
}

uint64_t
clock_ms(void)
{
	return 1000;
}

uint64_t
clock_elapsed_ms(void)
{
	return 1000;
}

double
clock_seconds(void)
{
	return 1;
}

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
	const struct timespec made[2] = {{.tv_sec = now}, {.tv_sec = now}};
	char name[80];

	snprintf(name, sizeof(name), "%s/file", path);
	assert_int_equal(file_write(name, "x", 1, 0600, NULL), ERR_OK);
	assert_int_equal(utimensat(dir, "file", made, 0), 0);
}

static void
begin(int64_t at)
{
	now = at;
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
	static const int64_t moves[] = {-12 * 365 * DAY, -DAY, 2 * DAY, 400 * DAY};
	const int64_t right = 1800000000;

	(void)state;
	for (size_t i = 0; i < sizeof(moves) / sizeof(*moves); i++) {
		/* The clock of a start, again and again, and that of what was written. */
		begin(right);
		for (int k = 0; k < 6; k++) {
			now = right + k * DAY + (k % 2 ? moves[i] : 0);
			assert_true(start());
			assert_true(start());
		}
		end();
		begin(right + moves[i]);
		for (int k = 0; k < 6; k++) {
			now = right + k * DAY;
			assert_true(start());
		}
		end();
	}
}

static void
old(void **state)
{
	const int64_t right = 1800000000;

	(void)state;
	begin(right);
	now += DAYS * DAY;
	assert_true(start());
	now += DAY;
	assert_true(start());
	now += DAYS / 2 * DAY;
	assert_true(start());
	/* In use again: as new. */
	write_file();
	now += (DAYS + 1) * DAY;
	assert_true(start());
	now += (DAYS / 2 + 1) * DAY;
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
