/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "machine.h"

static void
write_id(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* The expected value: printf 'rivulet machine 1\n0123456789abcdef0123456789abcdef' | sha256sum */
static void
test_id(void **state)
{
	(void)state;
	char path[] = "/tmp/rivulet.XXXXXX", one[MACHINE_HEX], other[MACHINE_HEX];

	close(mkstemp(path));
	setenv("RIVULET_MACHINE_ID_FILE", path, 1);
	write_id(path, "0123456789abcdef0123456789abcdef\nmore\n");
	machine_id(one);
	assert_string_equal(
	    one, "36eaabb625935a46dac5a0b8e7a2ef3b1a0dd7ad29648006182ac334a3c10ff2");
	write_id(path, "0123456789abcdef0123456789abcdee\n");
	machine_id(other);
	assert_int_equal(strlen(other), 64);
	assert_string_not_equal(one, other);
	write_id(path, "\n");
	machine_id(one);
	assert_string_equal(one, "");
	unlink(path);
	machine_id(one);
	assert_string_equal(one, "");
}

static void
test_clock_and_disk(void **state)
{
	(void)state;
	uint64_t now = (uint64_t)time(NULL) * 1000, bytes = 0;

	assert_true(machine_time_ms() >= now && machine_time_ms() < now + 600000);
	assert_true(machine_disk_free("/", &bytes));
	assert_false(machine_disk_free("/no/such/place", &bytes));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_id),
	    cmocka_unit_test(test_clock_and_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
