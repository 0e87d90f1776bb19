/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tfevents.h"

/* RFC 3720, appendix B.4. */
static void
test_crc(void **state)
{
	uint8_t data[32];
	(void)state;

	memset(data, 0, sizeof(data));
	assert_int_equal(tfevents_crc(data, sizeof(data)), 0x8a9136aa);
	memset(data, 0xff, sizeof(data));
	assert_int_equal(tfevents_crc(data, sizeof(data)), 0x62a8ab43);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)i;
	assert_int_equal(tfevents_crc(data, sizeof(data)), 0x46dd794e);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(31 - i);
	assert_int_equal(tfevents_crc(data, sizeof(data)), 0x113fdb5c);
	assert_int_equal(tfevents_crc("123456789", 9), 0xe3069283);
	/* The head of golden's first record. */
	assert_int_equal(tfevents_mask(tfevents_crc("\x18\0\0\0\0\0\0\0", 8)), 0x224b7fa3);
}

/* Two records, as tensorboard 2.21 makes them of the same Events (tests/vectors/make_tfevents.py). */
static const uint8_t golden[] = {0x18, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xa3, 0x7f, 0x4b,
    0x22, 0x09, 0x00, 0x00, 0x00, 0x40, 0xfc, 0x54, 0xd9, 0x41, 0x1a, 0x0d, 0x62, 0x72, 0x61, 0x69,
    0x6e, 0x2e, 0x45, 0x76, 0x65, 0x6e, 0x74, 0x3a, 0x32, 0xec, 0xed, 0x8f, 0x9d, 0x3c, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0xc8, 0xb7, 0xa3, 0x52, 0x09, 0x00, 0x00, 0x50, 0x40, 0xfc, 0x54,
    0xd9, 0x41, 0x10, 0xac, 0x02, 0x2a, 0x2e, 0x0a, 0x11, 0x0a, 0x0a, 0x6c, 0x6f, 0x73, 0x73, 0x2f,
    0x74, 0x72, 0x61, 0x69, 0x6e, 0x15, 0x00, 0x00, 0x40, 0x3f, 0x0a, 0x19, 0x0a, 0x12, 0x6d, 0x65,
    0x74, 0x72, 0x69, 0x63, 0x73, 0x2f, 0x70, 0x65, 0x72, 0x70, 0x6c, 0x65, 0x78, 0x69, 0x74, 0x79,
    0x15, 0x00, 0x00, 0x48, 0x41, 0xa8, 0x09, 0x32, 0xce};

static void
put_round(struct buf *out, uint64_t step, double loss)
{
	struct tfevents t;

	tfevents_init(&t);
	tfevents_scalar(&t, "loss/train", loss);
	tfevents_scalar(&t, "metrics/perplexity", 12.5);
	assert_int_equal(tfevents_end(out, &t, 1700000001.25, step), ERR_OK);
	tfevents_deinit(&t);
}

static void
make(struct buf *out)
{
	buf_init(out, 1 << 20);
	assert_int_equal(tfevents_begin(out, 1700000000), ERR_OK);
	put_round(out, 300, 0.75);
}

static void
test_golden(void **state)
{
	struct buf out;
	(void)state;

	make(&out);
	assert_int_equal(out.len, sizeof(golden));
	assert_memory_equal(out.data, golden, sizeof(golden));
	buf_deinit(&out);
}

/* A round without figures leaves no record. */
static void
test_empty(void **state)
{
	struct tfevents t;
	struct buf out;
	(void)state;

	tfevents_init(&t);
	buf_init(&out, 1 << 20);
	assert_int_equal(tfevents_end(&out, &t, 1, 1), ERR_OK);
	assert_int_equal(out.len, 0);
	tfevents_deinit(&t);
	buf_deinit(&out);
}

/* A record that would be too large is none at all, and the next one is whole. */
static void
test_large(void **state)
{
	struct tfevents t;
	struct tfevents_past past;
	struct buf out;
	char tag[1000];
	(void)state;

	memset(tag, 'x', sizeof(tag));
	tag[sizeof(tag) - 1] = '\0';
	tfevents_init(&t);
	make(&out);
	size_t before = out.len;
	for (int i = 0; i < 100; i++)
		tfevents_scalar(&t, tag, i);
	assert_int_equal(tfevents_end(&out, &t, 1, 301), ERR_LIMIT);
	assert_int_equal(out.len, before);
	put_round(&out, 302, 1);
	assert_int_equal(tfevents_read(&past, (const uint8_t *)out.data, out.len, NULL), ERR_OK);
	assert_int_equal(past.last, 302);
	tfevents_deinit(&t);
	buf_deinit(&out);
}

/* Cut anywhere, a file goes on behind its last whole record. */
static void
test_cut(void **state)
{
	struct tfevents_past past;
	struct buf out;
	(void)state;

	make(&out);
	size_t one = out.len;
	put_round(&out, 301, 0.5);
	for (size_t len = 0; len <= out.len; len++) {
		/* Flush against the end of the allocation: the sanitizers see what reads past it. */
		uint8_t *copy = malloc(len ? len : 1);
		assert_non_null(copy);
		memcpy(copy, out.data, len);
		assert_int_equal(tfevents_read(&past, copy, len, NULL), ERR_OK);
		free(copy);
		assert_int_equal(past.bytes,
		    len < 40		? 0
			: len < one	? 40
			: len < out.len ? one
					: len);
		assert_int_equal(past.steps, len >= one);
		assert_int_equal(past.last, len < one ? 0 : len < out.len ? 300 : 301);
	}
	buf_deinit(&out);
}

/* What is no event file stays as it is; so does one with a hole that is more than an unfinished record. */
static void
test_corrupt(void **state)
{
	static const uint8_t other[4096] = "<html>";
	struct tfevents_past past;
	struct why why;
	struct buf out;
	(void)state;

	assert_int_equal(tfevents_read(&past, other, sizeof(other), &why), ERR_CORRUPT);
	make(&out);
	for (uint64_t n = 301; out.len < 3 * TFEVENTS_RECORD_MAX; n++)
		put_round(&out, n, 1);
	out.data[100] = (char)(out.data[100] ^ 1);
	assert_int_equal(
	    tfevents_read(&past, (const uint8_t *)out.data, out.len, &why), ERR_CORRUPT);
	assert_int_equal(past.bytes, 40);
	buf_deinit(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_crc),
	    cmocka_unit_test(test_golden),
	    cmocka_unit_test(test_empty),
	    cmocka_unit_test(test_large),
	    cmocka_unit_test(test_cut),
	    cmocka_unit_test(test_corrupt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
