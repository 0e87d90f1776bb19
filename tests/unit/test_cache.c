/* stages: gcc openssl address */
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

#include "cache.h"
#include "file.h"

static char home[64], dir[80];

static int
set_up(void **state)
{
	(void)state;
	strcpy(home, "/tmp/test_cache.XXXXXX");
	assert_non_null(mkdtemp(home));
	snprintf(dir, sizeof(dir), "%s/models", home);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	assert_int_equal(file_empty_dir(dir, NULL), ERR_OK);
	rmdir(dir);
	rmdir(home);
	return 0;
}

static const char *
id_of(char c, char out[CACHE_ID_HEX])
{
	memset(out, c, CACHE_ID_HEX - 1);
	out[CACHE_ID_HEX - 1] = '\0';
	return out;
}

/* A model of `bytes` bytes, last used at second `used` of the epoch. */
static void
add(const struct cache *c, char name, size_t bytes, time_t used)
{
	char id[CACHE_ID_HEX], path[PATH_MAX];
	int fd;

	assert_int_equal(cache_part(c, id_of(name, id), &fd, NULL), ERR_OK);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	assert_int_equal(cache_commit(c, id, fd, path, NULL), ERR_OK);
	close(fd);
	const struct timespec times[2] = {{.tv_sec = used}, {.tv_sec = used}};
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static enum err
find(const struct cache *c, char name, uint64_t bytes)
{
	char id[CACHE_ID_HEX], path[PATH_MAX];

	return cache_find(c, id_of(name, id), bytes, path);
}

static void
test_find(void **state)
{
	struct cache c;
	struct stat st;
	char path[PATH_MAX], id[CACHE_ID_HEX];

	(void)state;
	assert_int_equal(cache_init(&c, home, "models", 1000, NULL), ERR_OK);
	assert_int_equal(find(&c, 'a', 100), ERR_NOTFOUND);
	add(&c, 'a', 100, 1000);
	assert_int_equal(cache_find(&c, id_of('a', id), 100, path), ERR_OK);
	/* Use renews its age. */
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_mtim.tv_sec > 1000);
	/* A file of another size cannot be the model and goes. */
	assert_int_equal(find(&c, 'a', 101), ERR_NOTFOUND);
	assert_int_equal(find(&c, 'a', 100), ERR_NOTFOUND);
}

static void
test_cap_drops_longest_unused(void **state)
{
	struct cache c;
	char id[CACHE_ID_HEX];

	(void)state;
	assert_int_equal(cache_init(&c, home, "models", 1000, NULL), ERR_OK);
	add(&c, 'a', 300, 50);
	add(&c, 'b', 300, 10);
	add(&c, 'c', 300, 30);
	assert_int_equal(cache_make_room(&c, id_of('d', id), 100, NULL), ERR_OK);
	assert_int_equal(find(&c, 'b', 300), ERR_OK); /* all of it fitted; b is now the newest */
	assert_int_equal(cache_make_room(&c, id, 500, NULL), ERR_OK);
	assert_int_equal(find(&c, 'c', 300), ERR_NOTFOUND);
	assert_int_equal(find(&c, 'a', 300), ERR_NOTFOUND);
	assert_int_equal(find(&c, 'b', 300), ERR_OK);
	assert_int_equal(cache_make_room(&c, id, 1000, NULL), ERR_OK);
	assert_int_equal(find(&c, 'b', 300), ERR_NOTFOUND);
	assert_int_equal(cache_make_room(&c, id, 1001, NULL), ERR_LIMIT);
}

/* However small they are: a device that served for a year must not look at a year's models whenever it asks for work. */
static void
test_cap_of_files(void **state)
{
	char id[CACHE_ID_HEX], path[PATH_MAX], ids[2 * CACHE_FILES_MAX][CACHE_ID_HEX];
	struct cache c;
	int fd;

	(void)state;
	assert_int_equal(cache_init(&c, home, "models", 1 << 20, NULL), ERR_OK);
	for (int i = 0; i < 2 * CACHE_FILES_MAX; i++) {
		snprintf(id, sizeof(id), "%064x", (unsigned)i);
		assert_int_equal(cache_make_room(&c, id, 1, NULL), ERR_OK);
		assert_int_equal(cache_part(&c, id, &fd, NULL), ERR_OK);
		assert_int_equal(ftruncate(fd, 1), 0);
		assert_int_equal(cache_commit(&c, id, fd, path, NULL), ERR_OK);
		close(fd);
	}
	assert_int_equal(cache_list(&c, ids, 2 * CACHE_FILES_MAX), CACHE_FILES_MAX);
	assert_string_equal(ids[0], id);
}

/* A difference counts, goes like any file, is no model, and goes with its model. */
static void
test_differences(void **state)
{
	char id[CACHE_ID_HEX], path[PATH_MAX], ids[4][CACHE_ID_HEX];
	struct cache c;
	uint64_t bytes;
	int fd;

	(void)state;
	assert_int_equal(cache_init(&c, home, "models", 1000, NULL), ERR_OK);
	add(&c, 'a', 300, 10);
	assert_int_equal(cache_held(&c, id_of('a', id), &bytes, path), ERR_OK);
	assert_int_equal(bytes, 300);
	assert_int_equal(cache_held(&c, id_of('b', id), &bytes, path), ERR_NOTFOUND);
	assert_int_equal(cache_begun(&c, id), 0);
	assert_int_equal(cache_part(&c, id, &fd, NULL), ERR_OK);
	assert_int_equal(ftruncate(fd, 50), 0);
	close(fd);
	assert_int_equal(cache_begun(&c, id), 50);
	/* Before anything else: times may be as coarse as some milliseconds. */
	snprintf(path, sizeof(path), "%s/%s.part", dir, id);
	const struct timespec old[2] = {{.tv_sec = 20}, {.tv_sec = 20}};
	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
	assert_int_equal(cache_difference(&c, id, &fd, NULL), ERR_OK);
	assert_int_equal(ftruncate(fd, 600), 0);
	close(fd);
	snprintf(path, sizeof(path), "%s/%s.diff", dir, id);
	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
	assert_int_equal(cache_list(&c, ids, 4), 1);
	/* Neither of its own is in the way; of another one both are. */
	assert_int_equal(cache_make_room(&c, id, 700, NULL), ERR_OK);
	assert_int_equal(find(&c, 'a', 300), ERR_OK);
	assert_int_equal(cache_make_room(&c, id_of('d', id), 700, NULL), ERR_OK);
	assert_int_equal(find(&c, 'a', 300), ERR_OK);
	assert_int_equal(cache_begun(&c, id_of('b', id)), 0);
	snprintf(path, sizeof(path), "%s/%s.diff", dir, id);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(cache_difference(&c, id, &fd, NULL), ERR_OK);
	close(fd);
}

static void
test_parts_count(void **state)
{
	struct cache c;
	char id[CACHE_ID_HEX], other[CACHE_ID_HEX];
	int fd;
	struct stat st;

	(void)state;
	assert_int_equal(cache_init(&c, home, "models", 1000, NULL), ERR_OK);
	assert_int_equal(cache_part(&c, id_of('e', id), &fd, NULL), ERR_OK);
	assert_int_equal(ftruncate(fd, 800), 0);
	/* Its own part does not stand in a download's way; somebody else's is rubbish. */
	assert_int_equal(cache_make_room(&c, id, 900, NULL), ERR_OK);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_nlink, 1);
	assert_int_equal(cache_make_room(&c, id_of('f', other), 900, NULL), ERR_OK);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_nlink, 0);
	close(fd);
}

static void
test_list(void **state)
{
	struct cache c;
	char ids[4][CACHE_ID_HEX];
	char path[128];

	(void)state;
	assert_int_equal(cache_init(&c, home, "models", 1000, NULL), ERR_OK);
	add(&c, 'a', 1, 10);
	add(&c, 'b', 1, 30);
	add(&c, 'c', 1, 20);
	/* Files of other names are not ours to list or to remove. */
	snprintf(path, sizeof(path), "%s/README", dir);
	assert_int_equal(file_write(path, "x", 1, 0644, NULL), ERR_OK);
	assert_int_equal(cache_list(&c, ids, 4), 3);
	assert_int_equal(ids[0][0], 'b');
	assert_int_equal(ids[1][0], 'c');
	assert_int_equal(ids[2][0], 'a');
	assert_int_equal(cache_list(&c, ids, 2), 2);
	assert_int_equal(cache_make_room(&c, ids[0], 1000, NULL), ERR_OK);
	assert_int_equal(access(path, F_OK), 0);
}

/* One changed byte, the size as it was: no longer the model of that name. */
static void
test_check(void **state)
{
	static const char sha256_of_abc[] =
	    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
	struct cache c;
	struct why why;
	char path[PATH_MAX];

	(void)state;
	assert_int_equal(cache_init(&c, home, "models", 1000, NULL), ERR_OK);
	assert_int_equal(cache_check(&c, sha256_of_abc, &why), ERR_NOTFOUND);
	snprintf(path, sizeof(path), "%s/%s.safetensors", dir, sha256_of_abc);
	assert_int_equal(file_write(path, "abc", 3, 0644, NULL), ERR_OK);
	assert_int_equal(cache_check(&c, sha256_of_abc, &why), ERR_OK);
	assert_int_equal(file_write(path, "abd", 3, 0644, NULL), ERR_OK);
	assert_int_equal(cache_find(&c, sha256_of_abc, 3, path), ERR_OK);
	assert_int_equal(cache_check(&c, sha256_of_abc, &why), ERR_CORRUPT);
	assert_non_null(strstr(why.text, "hash"));
	assert_int_equal(cache_find(&c, sha256_of_abc, 3, path), ERR_NOTFOUND);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_find, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_cap_drops_longest_unused, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_cap_of_files, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_differences, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_parts_count, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_check, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_list, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
