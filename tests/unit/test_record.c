/* stages: gcc address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flush.h"
#include "json.h"
#include "record_json.h"
#include "vector_file.h"

static void
vector_fields(void **state)
{
	(void)state;
	uint8_t data[RECORD_LEN], again[RECORD_LEN];
	struct record r;

	vector_file("tests/vectors/record.hex", data, RECORD_LEN);
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

	vector_file("tests/vectors/record.hex", data, RECORD_LEN);
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

	vector_file("tests/vectors/record.hex", data, RECORD_LEN);
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

	vector_file("tests/vectors/record.hex", data, RECORD_LEN);
	memset(data + 8, 0, 8);
	assert_int_equal(record_decode(&r, data, sizeof(data), &why), ERR_INVALID);
	assert_string_equal(why.text, "entries are numbered from 1");
}

/* --- JSON */

static struct json *
parse(const char *text)
{
	struct json *v = NULL;

	assert_int_equal(json_parse(&v, text, strlen(text), NULL), ERR_OK);
	return v;
}

static void
detail_there_and_back(void **state)
{
	static uint8_t bytes[] = {0, 1, 0xff, '"', 10};
	struct record_detail d = {7, 2, {0}, bytes, sizeof(bytes)}, got;

	(void)state;
	memset(d.salt, 0x5a, sizeof(d.salt));
	for (d.len = 0; d.len <= sizeof(bytes); d.len++) {
		struct json *v = record_json_detail(&d);
		assert_int_equal(record_json_detail_read(&got, v, NULL), ERR_OK);
		assert_int_equal(got.seq, 7);
		assert_int_equal(got.place, 2);
		assert_memory_equal(got.salt, d.salt, sizeof(d.salt));
		assert_int_equal(got.len, d.len);
		assert_memory_equal(got.data, bytes, d.len);
		free(got.data);
		json_free(v);
	}
}

#define SALT "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a"

static void
details_refused(void **state)
{
	static const char *const texts[] = {
	    "{}",
	    "[]",
	    "{\"seq\":1,\"place\":0,\"salt\":\"" SALT "\"}",
	    "{\"seq\":1,\"place\":0,\"salt\":\"5a\",\"data\":\"\"}",
	    "{\"seq\":-1,\"place\":0,\"salt\":\"" SALT "\",\"data\":\"\"}",
	    "{\"seq\":1,\"place\":0,\"salt\":\"" SALT "\",\"data\":\"YQ\"}",
	    "{\"seq\":1,\"place\":0,\"salt\":\"" SALT "\",\"data\":7}",
	};
	struct record_detail d;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct json *v = parse(texts[i]);
		assert_int_equal(record_json_detail_read(&d, v, NULL), ERR_INVALID);
		assert_null(d.data);
		json_free(v);
	}
}

static void
detail_limit(void **state)
{
	struct record_detail d = {1, 0, {0}, NULL, RECORD_DETAIL_MAX + 1}, got;

	(void)state;
	d.data = calloc(1, d.len);
	assert_non_null(d.data);
	struct json *v = record_json_detail(&d);
	assert_int_equal(record_json_detail_read(&got, v, NULL), ERR_INVALID);
	json_free(v);
	d.len--;
	v = record_json_detail(&d);
	assert_int_equal(record_json_detail_read(&got, v, NULL), ERR_OK);
	assert_int_equal(got.len, RECORD_DETAIL_MAX);
	free(got.data);
	json_free(v);
	free(d.data);
}

static void
entry_there_and_back(void **state)
{
	static const char text[] = "{\"event\":\"a \\\"quoted\\\" thing\"}";
	uint8_t data[RECORD_LEN], link[RECORD_LEN];
	const struct json *details;
	const char *body;

	(void)state;
	vector_file("tests/vectors/record.hex", data, RECORD_LEN);
	struct json *v = record_json_entry(data, text, NULL);
	assert_int_equal(record_json_entry_read(v, link, &body, &details, NULL), ERR_OK);
	assert_memory_equal(link, data, RECORD_LEN);
	assert_string_equal(body, text);
	assert_null(details);
	json_free(v);
	v = record_json_entry(data, text, json_array());
	assert_int_equal(record_json_entry_read(v, link, &body, &details, NULL), ERR_OK);
	assert_non_null(details);
	json_free(v);
	v = parse("{\"link\":\"AAAA\",\"body\":\"\"}");
	assert_int_equal(record_json_entry_read(v, link, &body, &details, NULL), ERR_INVALID);
	json_free(v);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(vector_fields),
	    cmocka_unit_test(wrong_length),
	    cmocka_unit_test(every_byte),
	    cmocka_unit_test(numbered_from_one),
	    cmocka_unit_test(detail_there_and_back),
	    cmocka_unit_test(details_refused),
	    cmocka_unit_test(detail_limit),
	    cmocka_unit_test(entry_there_and_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
