/* stages: gcc openssl address */
/* What the agent notes in its home for persons and `rivulet doctor`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "home.h"

static char home[64], path[96];

static void
expect_note(const char *line)
{
	char *text;
	size_t len;

	assert_int_equal(file_read(path, 1000, &text, &len, NULL), ERR_OK);
	assert_string_equal(text, line);
	free(text);
}

static struct stat
look(void)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st;
}

/* Whoever looks in finds a whole line, and since when it holds. */
static void
a_note_is_written_where_it_changes(void **state)
{
	(void)state;
	home_note(home, "waiting", "no-job");
	expect_note("waiting no-job\n");
	struct stat one = look();
	home_note(home, "waiting", "no-job");
	struct stat same = look();
	assert_true(one.st_ino == same.st_ino && one.st_ctim.tv_sec == same.st_ctim.tv_sec &&
	    one.st_ctim.tv_nsec == same.st_ctim.tv_nsec);
	/* Who has it open meanwhile goes on reading the old one. */
	FILE *f = fopen(path, "r");
	char line[64] = "";
	assert_non_null(f);
	home_note(home, "working", "0123456789abcdef0123456789abcdef");
	assert_non_null(fgets(line, sizeof(line), f));
	assert_string_equal(line, "waiting no-job\n");
	fclose(f);
	expect_note("working 0123456789abcdef0123456789abcdef\n");
	char part[110];
	snprintf(part, sizeof(part), "%s.part", path);
	assert_int_not_equal(access(part, F_OK), 0);
}

/* A detail longer than the file has room for is cut, and noted again each time. */
static void
long_notes_are_cut(void **state)
{
	char detail[1000];

	(void)state;
	memset(detail, 'x', sizeof(detail) - 1);
	detail[sizeof(detail) - 1] = '\0';
	home_note(home, "failed", detail);
	assert_true(look().st_size < 600);
	home_note(home, "waiting", "no-job");
	expect_note("waiting no-job\n");
}

/* Nothing is lost where it cannot be written: the old note stays. */
static void
without_a_disk(void **state)
{
	(void)state;
	home_note(home, "waiting", "no-job");
	assert_int_equal(chmod(home, 0500), 0);
	if (geteuid() != 0) {
		home_note(home, "working", "x");
		expect_note("waiting no-job\n");
	}
	assert_int_equal(chmod(home, 0700), 0);
	home_note("/nowhere/at/all", "working", "x");
}

static int
setup(void **state)
{
	(void)state;
	snprintf(home, sizeof(home), "/tmp/test_home.XXXXXX");
	if (!mkdtemp(home))
		return -1;
	snprintf(path, sizeof(path), "%s/%s", home, HOME_LAST);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	return file_remove_dir(home, NULL) == ERR_OK ? 0 : -1;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(a_note_is_written_where_it_changes),
	    TEST(long_notes_are_cut),
	    TEST(without_a_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
