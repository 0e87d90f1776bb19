/* stages: gcc address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "shm.h"

static char dir[64];

static const char *
at(const char *name)
{
	static char path[4][128];
	static unsigned next;
	char *out = path[next++ % 4];

	snprintf(out, sizeof(path[0]), "%s/%s", dir, name);
	return out;
}

static int
put(const char *name)
{
	int fd = open(at(name), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0 && ftruncate(fd, 4096) == 0);
	return fd;
}

static bool
is_there(const char *name)
{
	return access(at(name), F_OK) == 0;
}

static int
set_up(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/test_shm.XXXXXX");
	assert_non_null(mkdtemp(dir));
	return close(put("before"));
}

static int
tear_down(void **state)
{
	(void)state;
	return file_remove_dir(dir, NULL) != ERR_OK;
}

static void
takes_leftovers_alone(void **state)
{
	struct shm s = {.fd = -1};
	(void)state;

	shm_begin(&s, dir);
	close(put("left"));
	assert_int_equal(mkdir(at("folder"), 0), 0);
	assert_int_equal(symlink("before", at("link")), 0);
	int opened = put("open"), mapped = put("mapped");
	void *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, mapped, 0);
	assert_true(map != MAP_FAILED);
	close(mapped);
	close(put("another's"));
	bool other = chown(at("another's"), 65534, 65534) == 0;
	assert_true(shm_end(&s));
	assert_false(is_there("left") || is_there("folder") || is_there("link"));
	assert_true(is_there("before") && is_there("open") && is_there("mapped"));
	assert_int_equal(is_there("another's"), other);
	close(opened);
	munmap(map, 4096);
	/* They were there before this one. */
	shm_begin(&s, dir);
	assert_true(shm_end(&s));
	assert_true(is_there("open") && is_there("mapped"));
}

/* A data set that somebody of the same user has just laid there, and reads. */
static void
leaves_folders_in_use(void **state)
{
	struct shm s = {.fd = -1};
	(void)state;

	shm_begin(&s, dir);
	assert_int_equal(mkdir(at("set"), 0700), 0);
	assert_int_equal(mkdir(at("set/deep"), 0700), 0);
	assert_int_equal(mkdir(at("mapped"), 0700), 0);
	assert_int_equal(mkdir(at("idle"), 0700), 0);
	int opened = put("set/deep/file"), mapped = put("mapped/file");
	void *map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, mapped, 0);
	assert_true(map != MAP_FAILED);
	close(mapped);
	close(put("se"));
	assert_true(shm_end(&s));
	assert_true(is_there("set/deep/file") && is_there("mapped/file"));
	assert_false(is_there("idle") || is_there("se"));
	close(opened);
	munmap(map, 4096);
}

/* Another one's program lives: what it made may not be in use at the moment. */
static void
waits_for_others(void **state)
{
	struct shm mine = {.fd = -1}, others = {.fd = -1};
	(void)state;

	shm_begin(&mine, dir);
	shm_begin(&others, dir);
	close(put("mine"));
	close(put("others"));
	assert_false(shm_end(&mine));
	assert_true(is_there("mine") && is_there("others"));
	/* What was there at its first beginning counts, not at the second one. */
	shm_begin(&mine, dir);
	assert_false(shm_end(&mine));
	assert_true(shm_end(&others));
	assert_false(is_there("mine") || is_there("others"));
	close(put("late"));
	assert_true(shm_end(&mine));
	assert_false(is_there("late"));
	assert_true(is_there("before"));
}

static void
has_no_directory(void **state)
{
	struct shm s = {.fd = -1};
	(void)state;

	shm_begin(&s, at("none"));
	assert_int_equal(s.fd, -1);
	assert_true(shm_end(&s));
	shm_deinit(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(takes_leftovers_alone, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(leaves_folders_in_use, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(waits_for_others, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(has_no_directory, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
