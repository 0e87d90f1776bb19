#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "flush.h"
#include "hex.h"
#include "record.h"

/* Reads hex digits up to '#' on each line of a vector file. */
static void
read_vector(uint8_t out[RECORD_LEN])
{
	char line[256], digits[1024];
	size_t n = 0;
	FILE *f = fopen("tests/vectors/record.hex", "r");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		for (char *p = line; *p && *p != '#'; p++)
			if (isxdigit((unsigned char)*p) && n < sizeof(digits))
				digits[n++] = *p;
	fclose(f);
	assert_true(hex_decode(out, RECORD_LEN, digits, n));
}

static void
assert_run(const uint8_t *p, size_t len, uint8_t first)
{
	for (size_t i = 0; i < len; i++)
		assert_int_equal(p[i], first + i);
}

static void
vector_fields(void **state)
{
	(void)state;
	uint8_t data[RECORD_LEN], again[RECORD_LEN];
	struct record r;

	read_vector(data);
	assert_int_equal(record_decode(&r, data, sizeof(data), NULL), ERR_OK);
	assert_true(r.seq == 0x0102030405060708);
	assert_true(r.at_ms == 1700000000000);
	assert_int_equal(r.incarnation, 3);
	assert_run(r.previous, 32, 0x20);
	assert_run(r.body_hash, 32, 0x40);
	assert_run(r.job, 16, 0x10);
	assert_int_equal(r.round, 9);
	assert_run(r.signature, 64, 0xb0);
	record_encode(again, &r);
	assert_memory_equal(again, data, sizeof(data));
}

static void
wrong_length(void **state)
{
	(void)state;
	uint8_t data[RECORD_LEN + 1] = {0};
	struct record r;

	read_vector(data);
	for (size_t len = 0; len < RECORD_LEN; len++) {
		struct flush f = flush_new(data, len);
		assert_int_equal(record_decode(&r, f.data, len, NULL), ERR_INVALID);
		flush_free(&f);
	}
	assert_int_equal(record_decode(&r, data, sizeof(data), NULL), ERR_INVALID);
}

/* Each byte is either a field, and comes back, or fixed, and any change of it is refused. */
static void
every_byte(void **state)
{
	(void)state;
	uint8_t data[RECORD_LEN], again[RECORD_LEN];
	struct record r;

	read_vector(data);
	for (size_t i = 0; i < RECORD_LEN; i++) {
		bool fixed = i < 8 || (i >= 120 && i < 192);
		data[i] ^= 0x10;
		enum err e = record_decode(&r, data, sizeof(data), NULL);
		assert_int_equal(e, fixed ? ERR_INVALID : ERR_OK);
		if (!e) {
			record_encode(again, &r);
			assert_memory_equal(again, data, sizeof(data));
		}
		data[i] ^= 0x10;
	}
}

static void
numbered_from_one(void **state)
{
	(void)state;
	uint8_t data[RECORD_LEN];
	struct why why;
	struct record r;

	read_vector(data);
	memset(data + 8, 0, 8);
	assert_int_equal(record_decode(&r, data, sizeof(data), &why), ERR_INVALID);
	assert_string_equal(why.text, "entries are numbered from 1");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(vector_fields),
	    cmocka_unit_test(wrong_length),
	    cmocka_unit_test(every_byte),
	    cmocka_unit_test(numbered_from_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
