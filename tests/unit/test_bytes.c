/* stages: gcc clang address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <float.h>
#include <string.h>

#include "bytes.h"

static void
reads_little_endian(void **state)
{
	const uint8_t data[] = {
	    1, 2, 3, 4, 5, 6, 0, 0, 0xc0, 0x3f, 8, 7, 6, 5, 4, 3, 2, 0xff, 'x', 'y'};
	struct bytes_reader r = bytes_reader(data, sizeof(data));
	char text[2];
	(void)state;

	assert_int_equal(bytes_get_u16(&r), 0x0201);
	assert_int_equal(bytes_get_u32(&r), 0x06050403);
	assert_true(bytes_get_f32(&r) == 1.5f);
	assert_true(bytes_get_u64(&r) == 0xff02030405060708u);
	bytes_get(&r, text, 2);
	assert_memory_equal(text, "xy", 2);
	assert_int_equal(r.left, 0);
	assert_false(r.bad);
}

/* Every cut of an input gives zeros from the first missing byte on, and stays bad. */
static void
short_input_is_sticky(void **state)
{
	uint8_t data[18];
	(void)state;

	memset(data, 0xff, sizeof(data));
	for (size_t len = 0; len < 18; len++) {
		struct bytes_reader r = bytes_reader(data, len);
		uint8_t out[4] = {9, 9, 9, 9};
		assert_int_equal(bytes_get_u16(&r), len >= 2 ? 0xffff : 0);
		assert_int_equal(bytes_get_u32(&r), len >= 6 ? 0xffffffff : 0);
		assert_true(bytes_get_u64(&r) == (len >= 14 ? UINT64_MAX : 0));
		bytes_get(&r, out, 4);
		assert_memory_equal(out, "\0\0\0\0", 4);
		assert_true(r.bad);
		/* What is left would be enough for these, but a bad reader gives nothing any more. */
		assert_int_equal(bytes_get_u16(&r), 0);
		assert_false(bytes_get_zeros(&r, 0));
		assert_true(bytes_get_f32(&r) == 0);
		assert_true(r.bad);
	}
}

static void
huge_lengths(void **state)
{
	uint8_t data[8] = {0};
	struct bytes_reader r = bytes_reader(data, sizeof(data));
	struct bytes_writer w = bytes_writer(data, sizeof(data));
	(void)state;

	assert_false(bytes_get_zeros(&r, SIZE_MAX));
	assert_true(r.bad);
	bytes_put_zeros(&w, SIZE_MAX - 3);
	assert_true(w.bad);
}

static void
zeros(void **state)
{
	const uint8_t data[] = {0, 0, 0, 0, 0, 1, 7};
	struct bytes_reader r = bytes_reader(data, sizeof(data));
	(void)state;

	assert_true(bytes_get_zeros(&r, 3));
	assert_true(bytes_get_zeros(&r, 0));
	assert_false(bytes_get_zeros(&r, 3));
	assert_false(r.bad);
	assert_int_equal(r.left, 1);
	assert_false(bytes_get_zeros(&r, 2));
	assert_true(r.bad);
}

static void
nothing_to_read(void **state)
{
	struct bytes_reader r = bytes_reader(NULL, 0);
	(void)state;

	bytes_get(&r, NULL, 0);
	assert_true(bytes_get_zeros(&r, 0));
	assert_false(r.bad);
	assert_int_equal(bytes_get_u16(&r), 0);
	assert_true(r.bad);
}

static void
writes_what_it_reads(void **state)
{
	uint8_t data[26];
	struct bytes_writer w = bytes_writer(data, sizeof(data));
	(void)state;

	memset(data, 0xaa, sizeof(data));
	bytes_put_u16(&w, 0xfedc);
	bytes_put_u32(&w, 0x89abcdef);
	bytes_put_u64(&w, 0x0123456789abcdefu);
	bytes_put_f32(&w, -FLT_MIN);
	bytes_put(&w, "abc", 3);
	bytes_put_zeros(&w, 5);
	assert_false(w.bad);
	assert_int_equal(w.left, 0);
	assert_memory_equal(data,
	    "\xdc\xfe\xef\xcd\xab\x89\xef\xcd\xab\x89\x67\x45\x23\x01\0\0\x80\x80"
	    "abc\0\0\0\0\0",
	    26);

	struct bytes_reader r = bytes_reader(data, sizeof(data));
	assert_int_equal(bytes_get_u16(&r), 0xfedc);
	assert_int_equal(bytes_get_u32(&r), 0x89abcdef);
	assert_true(bytes_get_u64(&r) == 0x0123456789abcdefu);
	assert_true(bytes_get_f32(&r) == -FLT_MIN);
}

/* A write that does not fit changes nothing, nor does any write after it. */
static void
full_output_is_sticky(void **state)
{
	uint8_t data[8], want[8] = {1, 0, 0, 0, 0xaa, 0xaa, 0xaa, 0xaa};
	struct bytes_writer w = bytes_writer(data, 7);
	(void)state;

	memset(data, 0xaa, sizeof(data));
	bytes_put_u32(&w, 1);
	bytes_put_u32(&w, 2);
	assert_true(w.bad);
	bytes_put_u16(&w, 3);
	bytes_put(&w, "x", 1);
	bytes_put_zeros(&w, 1);
	bytes_put_f32(&w, 1);
	assert_memory_equal(data, want, sizeof(data));
	assert_int_equal(w.left, 3);
}

static void
places(void **state)
{
	static const struct {
		uint8_t key[2], more;
	} items[] = {{{1, 0}, 9}, {{1, 2}, 0}, {{7, 7}, 3}};

	(void)state;
	assert_int_equal(bytes_place(NULL, 0, 3, "\x01", 2), 0);
	assert_int_equal(bytes_place(items, 3, sizeof(*items), "\x00\xff", 2), 0);
	assert_int_equal(bytes_place(items, 3, sizeof(*items), "\x01\x00", 2), 0);
	assert_int_equal(bytes_place(items, 3, sizeof(*items), "\x01\x01", 2), 1);
	assert_int_equal(bytes_place(items, 3, sizeof(*items), "\x07\x07", 2), 2);
	assert_int_equal(bytes_place(items, 3, sizeof(*items), "\x07\x08", 2), 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(places),
	    cmocka_unit_test(reads_little_endian),
	    cmocka_unit_test(short_input_is_sticky),
	    cmocka_unit_test(huge_lengths),
	    cmocka_unit_test(zeros),
	    cmocka_unit_test(nothing_to_read),
	    cmocka_unit_test(writes_what_it_reads),
	    cmocka_unit_test(full_output_is_sticky),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
