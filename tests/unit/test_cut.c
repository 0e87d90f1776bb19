/* stages: gcc openssl address */
/* Mapped files that somebody cuts: nobody dies of it, and whoever read them can tell. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cut.h"

#define PAGES 100

static size_t page;

/* A file without a name, of so many pages full of ones. */
static const uint8_t *
map_file(size_t pages, int *fd)
{
	char path[] = "/tmp/test_cut.XXXXXX";

	*fd = mkstemp(path);
	assert_true(*fd >= 0);
	assert_int_equal(unlink(path), 0);
	for (size_t i = 0; i < pages * page; i += 8)
		assert_int_equal(write(*fd, "\1\1\1\1\1\1\1\1", 8), 8);
	const uint8_t *data = mmap(NULL, pages * page, PROT_READ, MAP_SHARED, *fd, 0);
	assert_true(data != MAP_FAILED);
	return data;
}

static void
whose_pages_were_replaced(void **state)
{
	const unsigned long before = cut_count();
	int fd, other_fd;

	(void)state;
	/* Here, as cmocka has a handler of its own. */
	cut_survive();
	const uint8_t *data = map_file(3, &fd), *other = map_file(1, &other_fd);
	assert_int_equal(data[2 * page] + other[0], 2);
	assert_int_equal(ftruncate(fd, (off_t)page + 100), 0);
	assert_int_equal(data[page] + data[page + 200], 1);
	assert_false(cut_hit(data, 3 * page, before));
	assert_int_equal(data[2 * page + 7], 0);
	assert_int_equal(cut_count(), before + 1);
	assert_true(cut_hit(data, 3 * page, before));
	assert_true(cut_hit(data + 2 * page + 9, 1, before));
	assert_false(cut_hit(data, 2 * page, before));
	assert_false(cut_hit(other, page, before));
	assert_false(cut_hit(data, 3 * page, cut_count()));
	/* The page stays. */
	assert_int_equal(data[2 * page + 8], 0);
	assert_int_equal(cut_count(), before + 1);
	assert_int_equal(munmap((void *)(uintptr_t)data, 3 * page), 0);
	assert_int_equal(munmap((void *)(uintptr_t)other, page), 0);
	close(fd);
	close(other_fd);
}

/* More than are remembered may have been anybody's, and only of later ones it can be told again. */
static void
many_pages(void **state)
{
	const unsigned long before = cut_count();
	unsigned sum = 0;
	int fd, other_fd;

	(void)state;
	/* Here, as cmocka has a handler of its own. */
	cut_survive();
	const uint8_t *data = map_file(PAGES, &fd), *other = map_file(1, &other_fd);
	assert_int_equal(ftruncate(fd, 0), 0);
	for (size_t i = 0; i < PAGES; i++)
		sum += data[i * page];
	assert_int_equal(sum, 0);
	assert_int_equal(cut_count(), before + PAGES);
	assert_true(cut_hit(other, page, before));
	assert_false(cut_hit(other, page, cut_count()));
	assert_true(cut_hit(data, PAGES * page, cut_count() - 1));
	assert_int_equal(munmap((void *)(uintptr_t)data, PAGES * page), 0);
	assert_int_equal(munmap((void *)(uintptr_t)other, page), 0);
	close(fd);
	close(other_fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(whose_pages_were_replaced),
	    cmocka_unit_test(many_pages),
	};

	page = (size_t)sysconf(_SC_PAGESIZE);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
