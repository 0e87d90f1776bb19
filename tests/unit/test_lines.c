/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "last_words.h"
#include "lines.h"

static char seen[256];

static enum err
each(void *context, const char *line, size_t len)
{
	size_t at = strlen(seen);

	(void)context;
	assert_int_equal(line[len], '\0');
	snprintf(seen + at, sizeof(seen) - at, "%zu:%s;", len, line);
	return strcmp(line, "no") == 0 ? ERR_INVALID : ERR_OK;
}

static enum err
feed(struct lines *l, const char *text)
{
	return lines_feed(l, text, strlen(text), each, NULL);
}

/* However the stream is cut, the lines are the same. */
static void
test_pieces(void **state)
{
	static const char text[] = "one\n\ntwo three\nfour\n";
	struct lines l;

	(void)state;
	for (size_t size = 1; size < sizeof(text); size++) {
		lines_init(&l, 9);
		seen[0] = '\0';
		for (size_t at = 0; at < sizeof(text) - 1; at += size) {
			size_t n = sizeof(text) - 1 - at;
			assert_int_equal(
			    lines_feed(&l, text + at, n < size ? n : size, each, NULL), ERR_OK);
		}
		assert_string_equal(seen, "3:one;0:;9:two three;4:four;");
		lines_deinit(&l);
	}
}

static void
test_limit(void **state)
{
	struct lines l;

	(void)state;
	lines_init(&l, 4);
	seen[0] = '\0';
	assert_int_equal(feed(&l, "1234\n123"), ERR_OK);
	assert_int_equal(feed(&l, "4"), ERR_OK);
	assert_int_equal(feed(&l, "5"), ERR_LIMIT);
	assert_string_equal(seen, "4:1234;");
	lines_deinit(&l);
	lines_init(&l, 4);
	seen[0] = '\0';
	assert_int_equal(feed(&l, "yes\nno\nyes\n"), ERR_INVALID);
	assert_string_equal(seen, "3:yes;2:no;");
	lines_deinit(&l);
}

static void
test_last_words(void **state)
{
	struct last_words l;
	char text[5];

	(void)state;
	last_words_init(&l, text, sizeof(text));
	assert_string_equal(text, "");
	last_words_add(&l, "ab", 2);
	assert_string_equal(text, "ab");
	last_words_add(&l, "cde", 3);
	assert_string_equal(text, "bcde");
	last_words_add(&l, "0123456789", 10);
	assert_string_equal(text, "6789");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_pieces),
	    cmocka_unit_test(test_limit),
	    cmocka_unit_test(test_last_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
