/* stages: gcc address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "buf.h"

static void
empty(void **state)
{
	struct buf b;
	(void)state;

	buf_init(&b, 10);
	assert_string_equal(buf_str(&b), "");
	buf_consume(&b, 0);
	buf_reset(&b);
	assert_int_equal(buf_append(&b, "", 0), ERR_OK);
	assert_string_equal(buf_str(&b), "");
	buf_deinit(&b);
	buf_deinit(&b);
	assert_string_equal(buf_str(&b), "");
}

static void
grows_to_its_maximum(void **state)
{
	struct buf b;
	(void)state;

	buf_init(&b, 1000);
	for (size_t i = 0; i < 1000; i++) {
		char c = (char)('a' + i % 26);
		assert_int_equal(buf_append(&b, &c, 1), ERR_OK);
		assert_int_equal(b.len, i + 1);
		assert_int_equal(b.data[i + 1], 0);
	}
	assert_int_equal(buf_append(&b, "x", 1), ERR_LIMIT);
	assert_int_equal(buf_printf(&b, "%d", 1), ERR_LIMIT);
	assert_int_equal(b.len, 1000);
	assert_int_equal(buf_append(&b, "x", 0), ERR_OK);
	for (size_t i = 0; i < 1000; i++)
		assert_int_equal(b.data[i], 'a' + i % 26);
	buf_deinit(&b);
}

static void
limits(void **state)
{
	struct buf b;
	void *at;
	(void)state;

	buf_init(&b, 0);
	assert_int_equal(buf_append(&b, "x", 1), ERR_LIMIT);
	assert_int_equal(buf_extend(&b, 0, &at), ERR_OK);
	buf_deinit(&b);
	buf_init(&b, 5);
	assert_int_equal(buf_extend(&b, SIZE_MAX, &at), ERR_LIMIT);
	assert_int_equal(buf_append(&b, "123456", 6), ERR_LIMIT);
	assert_string_equal(buf_str(&b), "");
	assert_int_equal(buf_append(&b, "12345", 5), ERR_OK);
	assert_int_equal(buf_extend(&b, SIZE_MAX - 2, &at), ERR_LIMIT);
	assert_string_equal(buf_str(&b), "12345");
	buf_deinit(&b);
	/* No sum of lengths may wrap, even where the maximum allows everything. */
	buf_init(&b, SIZE_MAX);
	assert_int_equal(buf_append(&b, "12345", 5), ERR_OK);
	assert_int_equal(buf_extend(&b, SIZE_MAX - 5, &at), ERR_NOMEM);
	assert_int_equal(buf_extend(&b, SIZE_MAX - 4, &at), ERR_LIMIT);
	assert_string_equal(buf_str(&b), "12345");
	buf_deinit(&b);
}

static void
prints(void **state)
{
	struct buf b;
	char wide[301];
	(void)state;

	memset(wide, 'w', 300);
	wide[300] = '\0';
	buf_init(&b, 400);
	assert_int_equal(buf_printf(&b, "%s=%d;", "round", 7), ERR_OK);
	assert_int_equal(buf_printf(&b, "%s", wide), ERR_OK);
	assert_int_equal(b.len, 308);
	assert_memory_equal(b.data, "round=7;ww", 10);
	assert_int_equal(b.data[308], 0);
	assert_int_equal(buf_printf(&b, "%s", wide), ERR_LIMIT);
	assert_int_equal(b.len, 308);
	assert_int_equal(strlen(buf_str(&b)), 308);
	buf_deinit(&b);
}

static void
consumes_and_resets(void **state)
{
	struct buf b;
	void *at;
	(void)state;

	buf_init(&b, 100);
	assert_int_equal(buf_append(&b, "hello, world", 12), ERR_OK);
	buf_consume(&b, 7);
	assert_string_equal(buf_str(&b), "world");
	buf_consume(&b, 0);
	assert_string_equal(buf_str(&b), "world");
	assert_int_equal(buf_extend(&b, 2, &at), ERR_OK);
	memcpy(at, "!!", 2);
	assert_string_equal(buf_str(&b), "world!!");
	buf_consume(&b, 7);
	assert_int_equal(b.len, 0);
	assert_string_equal(buf_str(&b), "");
	assert_int_equal(buf_append(&b, "again", 5), ERR_OK);
	buf_reset(&b);
	assert_string_equal(buf_str(&b), "");
	assert_int_equal(b.len, 0);
	buf_deinit(&b);
}

static void
binary(void **state)
{
	struct buf b;
	(void)state;

	buf_init(&b, 8);
	assert_int_equal(buf_append(&b, "a\0b", 3), ERR_OK);
	assert_int_equal(buf_append(&b, "\0c", 2), ERR_OK);
	assert_int_equal(b.len, 5);
	assert_memory_equal(b.data, "a\0b\0c", 6);
	buf_deinit(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(empty),
	    cmocka_unit_test(grows_to_its_maximum),
	    cmocka_unit_test(limits),
	    cmocka_unit_test(prints),
	    cmocka_unit_test(consumes_and_resets),
	    cmocka_unit_test(binary),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
