/* stages: gcc clang address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "flush.h"
#include "json.h"
#include "json_scan.h"
#include "prng.h"

/* Parses with the last byte flush against an unreadable page. */
static enum err
parse_flush(struct json **out, const char *text, size_t len, struct why *why)
{
	struct flush f = flush_new(text, len);
	enum err e = json_parse(out, f.data, len, why);

	flush_free(&f);
	return e;
}

static struct json *
good(const char *text)
{
	struct json *v = NULL;
	struct why why = {""};
	enum err e = parse_flush(&v, text, strlen(text), &why);

	if (e)
		print_error("%s: %s\n", text, why.text);
	assert_int_equal(e, ERR_OK);
	assert_non_null(v);
	return v;
}

static void
bad(enum err expected, const char *text, size_t len, const char *reason)
{
	struct json *v = (struct json *)&v;
	struct why why = {""};
	enum err e = parse_flush(&v, text, len, &why);

	if (e != expected || !strstr(why.text, reason))
		print_error("%.60s: %s: %s\n", text, err_name(e), why.text);
	assert_int_equal(e, expected);
	assert_null(v);
	assert_non_null(strstr(why.text, reason));
}

static void
prints(const struct json *v, const char *expected)
{
	struct buf b;

	buf_init(&b, 1 << 20);
	assert_int_equal(json_print(&b, v, false), ERR_OK);
	assert_string_equal(buf_str(&b), expected);
	buf_deinit(&b);
}

static void
test_kinds(void **state)
{
	(void)state;
	struct json *v = good(
	    " {\"a\" : [1, 2.5, -3e2], \"b\":true,\"c\":false,\n\t\"d\":null,\r\"e\":\"x\"} \n");
	double d = 0;
	uint64_t u = 0;
	bool b = false;

	assert_int_equal(json_kind(v), JSON_OBJECT);
	assert_int_equal(json_count(v), 5);
	assert_int_equal(json_depth(v), 2);
	const struct json *a = json_get(v, "a");
	assert_int_equal(json_kind(a), JSON_ARRAY);
	assert_string_equal(json_key(a), "a");
	assert_int_equal(json_count(a), 3);
	assert_true(json_u64(json_at(a, 0), &u) && u == 1);
	assert_true(json_double(json_at(a, 1), &d) && d == 2.5);
	assert_true(json_double(json_at(a, 2), &d) && d == -300);
	assert_null(json_at(a, 3));
	assert_ptr_equal(json_next(json_first(a)), json_at(a, 1));
	assert_false(json_u64(json_at(a, 1), &u));
	assert_false(json_u64(json_at(a, 2), &u));
	assert_true(json_bool(json_get(v, "b"), &b) && b);
	assert_true(json_bool(json_get(v, "c"), &b) && !b);
	assert_int_equal(json_kind(json_get(v, "d")), JSON_NULL);
	assert_string_equal(json_string(json_get(v, "e")), "x");
	assert_null(json_string(a));
	assert_null(json_get(v, "A"));
	assert_null(json_get(a, "a"));
	json_free(v);
}

static void
test_absent(void **state)
{
	(void)state;
	double d;
	uint64_t u;
	bool b;

	assert_null(json_get(NULL, "a"));
	assert_null(json_at(NULL, 0));
	assert_null(json_first(NULL));
	assert_null(json_next(NULL));
	assert_null(json_key(NULL));
	assert_null(json_string(NULL));
	assert_int_equal(json_count(NULL), 0);
	assert_int_equal(json_depth(NULL), 0);
	assert_false(json_u64(NULL, &u));
	assert_false(json_double(NULL, &d));
	assert_false(json_bool(NULL, &b));
	assert_null(json_copy(NULL));
	json_free(NULL);
}

static void
test_syntax(void **state)
{
	(void)state;
	static const char *const texts[] = {"", " ", "{", "}", "[", "]", "[1,]", "[,1]",
	    "{\"a\":1,}", "{\"a\"}", "{\"a\":}", "{a:1}", "{1:1}", "{\"a\" 1}", "[1 2]", "[1}",
	    "{\"a\":1]", "tru", "truE", "nul", "True", "NaN", "Infinity", "1 2", "{} {}", "[]x",
	    "\"a", "\"\\", "\"\\x\"", "'a'", "\"\\u12\"", "\"\\u12g4\"", "\"\\ud800\"",
	    "\"\\udc00\"", "\"\\ud800\\u0041\"", "/*c*/1", "1//c", "[1\v,2]", "[1\f]",
	    "\xef\xbb\xbf{}", "\"\x01\"", "\"a\nb\"", "\"\t\"", "{\"1\":1,"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		bad(ERR_INVALID, texts[i], strlen(texts[i]), "not JSON");
	bad(ERR_INVALID, "\xef\xbb\xbf{}", 5, "not JSON at byte 0: a byte order mark");
	bad(ERR_INVALID, "\xff\xfe{\0}\0", 6, "not JSON: this is UTF-16; UTF-8 is read");
	bad(ERR_INVALID, "{\0}\0", 4, "not JSON: this is UTF-16LE");
}

/* A word that no JSON has counts before words in the wrong order, and these before keys and numbers; of several such the outermost. */
static void
test_which_mistake(void **state)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
	    {"{a:1}", "not JSON at byte 2"},
	    {"[1 2] \001", "not JSON at byte 7: unexpected character"},
	    {"{\"1\":1,", "not JSON at byte 7"},
	    {"[1,]", "not JSON at byte 3"},
	    {"{\"a\":1,}", "not JSON at byte 8"},
	    {"nul", "not JSON at byte 0"},
	    {"[nulls]", "not JSON at byte 5"},
	    {"\"\\x\"", "not JSON at byte 1"},
	    {"\"ab\\ud800c\"", "not JSON at byte 3"},
	    {"\"\\ude00\"", "not JSON at byte 1"},
	    {"[1] 2", "not JSON at byte 4"},
	    {"[\"\\x\", 01]", "not JSON at byte 8: malformed number"},
	    {"{\"a\" 1}", "not JSON at byte 5"},
	    {"{\"a\":1 \"b\":2}", "not JSON at byte 7"},
	    {"[[[1}]", "not JSON at byte 4"},
	    {"{\"a\":1,\"a\":1e999}", "JSON key \"a\" used twice"},
	    {"[{\"b\":{\"z\":1,\"z\":2},\"a\":1,\"a\":2}]", "JSON key \"a\" used twice"},
	    {"[1e999,{\"a\":1,\"a\":2}]", "JSON number out of range"},
	    {"{\"k\":1,\"k\":2,\"c\":1,\"c\":2}", "JSON key \"c\" used twice"},
	    {"{\"a\":1,\"a\":2} x", "not JSON at byte 14"},
	    {"{\"a\\u0001\":1,\"a\\u0001\":2}", "JSON key \"a?\" used twice"},
	    {"[1", "not JSON at byte 2"},
	    {"{", "not JSON at byte 1"},
	    {"  ", "not JSON at byte 2"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct json *v = NULL;
		struct why why = {""};
		assert_int_equal(
		    parse_flush(&v, rows[i].text, strlen(rows[i].text), &why), ERR_INVALID);
		assert_string_equal(why.text, rows[i].why);
	}
}

static void
test_numbers(void **state)
{
	(void)state;
	static const char *const wrong[] = {"01", "-01", "+1", "-", ".5", "-.5", "1.", "1.e1", "1e",
	    "1e+", "0x10", "1.2.3", "1-2", "--1", "1e1e1", "00", "[01]", "-a"};
	static const char *const right[] = {
	    "0", "-0", "0.5", "-1.25", "1e3", "1E+3", "1e-3", "123456789", "0e0"};
	char digits[80] = {0};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		bad(ERR_INVALID, wrong[i], strlen(wrong[i]), "not JSON");
	for (size_t i = 0; i < sizeof(right) / sizeof(*right); i++) {
		double d = NAN;
		struct json *v = good(right[i]);
		assert_true(json_double(v, &d) && d == strtod(right[i], NULL));
		json_free(v);
	}
	bad(ERR_INVALID, "1e999", 5, "out of range");
	bad(ERR_INVALID, "[[-1e999]]", 10, "out of range");
	memset(digits, '1', 62);
	json_free(good(digits));
	memset(digits, '1', 63);
	bad(ERR_INVALID, digits, 63, "too long");
}

static void
test_whole_numbers(void **state)
{
	(void)state;
	static const char *const above[] = {"9007199254740992", "9007199254740993", "9e15999",
	    "18446744073709551615", "1e300", "-1", "-0.5", "0.5"};
	struct json *v = good("9007199254740991");
	uint64_t u = 7;

	assert_true(json_u64(v, &u));
	assert_true(u == JSON_INT_MAX);
	prints(v, "9007199254740991");
	json_free(v);
	for (size_t i = 0; i < sizeof(above) / sizeof(*above); i++) {
		if (json_parse(&v, above[i], strlen(above[i]), NULL))
			continue;
		assert_false(json_u64(v, &u));
		json_free(v);
	}
	assert_true(u == JSON_INT_MAX);
}

static void
test_strings(void **state)
{
	(void)state;
	static const char *const broken[] = {"\"\x80\"", "\"\xc0\xaf\"", "\"\xc3\"",
	    "\"\xe0\x9f\xbf\"", "\"\xed\xa0\x80\"", "\"\xf0\x8f\xbf\xbf\"", "\"\xf4\x90\x80\x80\"",
	    "\"\xf5\x80\x80\x80\"", "\"\xe2\x82\"", "{\"\xff\":1}", "\"\xe2\x82"};
	struct json *v = good("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00 "
			      "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");

	assert_string_equal(json_string(v),
	    "\"\\/\b\f\n\r\t\xc3\xa9\xf0\x9f\x98\x80 \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
	prints(v,
	    "\"\\\"\\\\/\\b\\f\\n\\r\\t\xc3\xa9\xf0\x9f\x98\x80 "
	    "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
	json_free(v);
	for (size_t i = 0; i < sizeof(broken) / sizeof(*broken); i++)
		bad(ERR_INVALID, broken[i], strlen(broken[i]), "UTF-8");
	bad(ERR_INVALID, "\"a\\u0000b\"", 10, "NUL");
	bad(ERR_INVALID, "{\"\\u0000\":1}", 12, "NUL");
	bad(ERR_INVALID, "\"a\0b\"", 5, "control");
	bad(ERR_INVALID, "{}\0", 3, "unexpected");
	json_free(good("\"\\\\u0000\""));
	json_free(good("\"\x7f\""));
}

static void
test_depth(void **state)
{
	(void)state;
	char text[5000];
	struct json *v;

	for (size_t depth = 31; depth <= 33; depth++) {
		memset(text, '[', depth);
		memset(text + depth, ']', depth);
		enum err e = parse_flush(&v, text, 2 * depth, NULL);
		assert_int_equal(e, depth <= 32 ? ERR_OK : ERR_LIMIT);
		if (!e)
			assert_int_equal(json_depth(v), depth);
		json_free(v);
	}
	memset(text, '[', 2000);
	bad(ERR_LIMIT, text, 2000, "too deeply");
	json_free(good("\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\""));
	json_free(good("[\"\\\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"]"));
}

static void
test_duplicates(void **state)
{
	(void)state;
	struct buf b;
	struct json *v;

	bad(ERR_INVALID, "{\"a\":1,\"b\":2,\"a\":3}", 19, "\"a\" used twice");
	bad(ERR_INVALID, "[{\"x\":{\"k\":1,\"\\u006b\":1}}]", 26, "\"k\" used twice");
	bad(ERR_INVALID, "{\"\":1,\"\":2}", 11, "used twice");
	json_free(good("{\"a\":1,\"A\":2,\"b\":{\"a\":1}}"));
	/* A quadratic search over so many keys would take minutes. */
	buf_init(&b, 4 << 20);
	for (unsigned i = 0; i < 200000; i++)
		assert_int_equal(buf_printf(&b, "%s\"k%u\":0", i ? "," : "{", i), ERR_OK);
	assert_int_equal(buf_append(&b, "}", 1), ERR_OK);
	assert_int_equal(json_parse(&v, b.data, b.len, NULL), ERR_OK);
	assert_int_equal(json_count(v), 200000);
	json_free(v);
	b.len--;
	assert_int_equal(buf_printf(&b, ",\"k77777\":1}"), ERR_OK);
	bad(ERR_INVALID, b.data, b.len, "\"k77777\" used twice");
	buf_deinit(&b);
}

static void
test_build(void **state)
{
	(void)state;
	struct json *o = json_object(), *a = json_array();
	struct buf b;

	json_push(a, json_new_u64(1));
	json_push(a, json_new_string("x"));
	json_push(a, json_new_double(0.1));
	json_push(a, json_object());
	json_push(a, json_array());
	json_add(o, "a", a);
	json_add_string(o, "s", "q\"\x01\x7f");
	json_add_u64(o, "u", JSON_INT_MAX);
	json_add_double(o, "nan", NAN);
	json_add_double(o, "inf", -INFINITY);
	json_add_bool(o, "t", true);
	json_add_null(o, "n");
	json_add_string(o, "broken",
	    "a\xff"
	    "b\xe2\x82");
	const char *expected =
	    "{\"a\":[1,\"x\",0.1,{},[]],\"s\":\"q\\\"\\u0001\x7f\",\"u\":9007199254740991,"
	    "\"nan\":null,\"inf\":null,\"t\":true,\"n\":null,"
	    "\"broken\":\"a\xef\xbf\xbd"
	    "b\xef\xbf\xbd\xef\xbf\xbd\"}";
	prints(o, expected);
	struct json *copy = json_copy(o);
	json_free(o);
	prints(copy, expected);
	json_free(copy);
	buf_init(&b, 1000);
	o = good("{\"a\":[1,{\"b\":2}],\"c\":{}}");
	assert_int_equal(json_print(&b, o, true), ERR_OK);
	assert_string_equal(buf_str(&b),
	    "{\n  \"a\": [\n    1,\n    {\n      \"b\": 2\n    }\n  ],\n  \"c\": {}\n}");
	json_free(o);
	buf_deinit(&b);
}

static void
test_bad_trees(void **state)
{
	(void)state;
	struct json *o = json_object(), *inner = json_array();
	struct buf b;

	buf_init(&b, 100);
	assert_int_equal(buf_append(&b, "x", 1), ERR_OK);
	json_push(inner, json_new_u64(1));
	json_push(inner, NULL);
	json_add(o, "inner", inner);
	assert_int_equal(json_print(&b, o, false), ERR_NOMEM);
	assert_string_equal(buf_str(&b), "x");
	struct json *copy = json_copy(o);
	assert_int_equal(json_print(&b, copy, false), ERR_NOMEM);
	json_free(copy);
	json_free(o);
	assert_int_equal(json_print(&b, NULL, false), ERR_NOMEM);
	o = json_object();
	json_push(o, json_new_u64(1));
	assert_int_equal(json_print(&b, o, false), ERR_NOMEM);
	json_free(o);
	json_add(NULL, "a", json_new_u64(1));
	json_push(NULL, json_new_u64(1));
	o = json_object();
	for (int i = 0; i < 30; i++)
		json_add_u64(o, "key", 1);
	assert_int_equal(json_print(&b, o, false), ERR_LIMIT);
	assert_string_equal(buf_str(&b), "x");
	json_free(o);
	o = json_array();
	for (int i = 0; i < 100; i++) {
		struct json *outer = json_array();
		json_push(outer, o);
		o = outer;
	}
	b.max = 10000;
	assert_int_equal(json_print(&b, o, false), ERR_LIMIT);
	json_free(o);
	buf_deinit(&b);
}

static void
test_shortest(void **state)
{
	(void)state;
	static const struct {
		double v;
		const char *text;
	} known[] = {{0, "0"}, {0.1, "0.1"}, {1.0 / 3, "0.3333333333333333"},
	    {0.1 + 0.2, "0.30000000000000004"}, {1e20, "1e+20"}, {5e-324, "5e-324"},
	    {1.7976931348623157e308, "1.7976931348623157e+308"}, {100000000, "100000000"},
	    {-5, "-5"}, {0.97, "0.97"}, {1e-7, "1e-07"}, {1763880000.123456, "1763880000.123456"},
	    {1763880000.5, "1763880000.5"}, {-1.000001, "-1.000001"}, {1.05, "1.05"},
	    {1.0000001, "1.0000001"}, {4294967295.999999, "4294967295.999999"},
	    {9007199254.740991, "9007199254.740992"}};
	struct prng r;

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		struct json *v = json_new_double(known[i].v);
		prints(v, known[i].text);
		json_free(v);
	}
	print_message("seed 11\n");
	prng_seed(&r, 11);
	for (int i = 0; i < 20000; i++) {
		char text[40];
		double v = (double)(prng_u64(&r) >> (11 + i % 40)) / 1e6;
		int precision = 15;
		do
			snprintf(text, sizeof(text), "%.*g", precision, v);
		while (strtod(text, NULL) != v && precision++ < 17);
		struct json *node = json_new_double(v);
		prints(node, text);
		json_free(node);
	}
	for (int i = 0; i < 3000; i++) {
		uint64_t bits = prng_u64(&r);
		double v, back = 0;
		struct buf b;
		struct json *node;
		memcpy(&v, &bits, sizeof(v));
		if (!isfinite(v))
			continue;
		buf_init(&b, 64);
		node = json_new_double(v);
		assert_int_equal(json_print(&b, node, false), ERR_OK);
		json_free(node);
		assert_int_equal(json_parse(&node, b.data, b.len, NULL), ERR_OK);
		assert_true(json_double(node, &back) && back == v);
		json_free(node);
		buf_deinit(&b);
	}
}

/* Skips itself where no such locale is installed; then the C locale is all a program can have. */
static void
test_locale(void **state)
{
	(void)state;
	static const char *const names[] = {
	    "de_DE.UTF-8", "fr_FR.UTF-8", "ps_AF.UTF-8", "de_DE", "nl_NL.UTF-8"};
	double d = 0;
	size_t i = 0;

	while (i < sizeof(names) / sizeof(*names) && !setlocale(LC_ALL, names[i]))
		i++;
	if (i == sizeof(names) / sizeof(*names))
		skip();
	struct json *v = good("[1.5]");
	assert_true(json_double(json_at(v, 0), &d) && d == 1.5);
	prints(v, "[1.5]");
	json_free(v);
	setlocale(LC_ALL, "C");
}

static void
test_values(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		size_t most;
	} rows[] = {{"1", 1}, {"[]", 2}, {"[1,2,3]", 4}, {"{\"a\":1,\"b\":[true]}", 4},
	    {"\"[,{\\\",,\"", 1}, {"[\"a,b\",null]", 3}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_int_equal(
		    json_scan_values(rows[i].text, strlen(rows[i].text)), rows[i].most);
}

/* What is printed already goes into a tree as it is. */
static void
test_printed(void **state)
{
	(void)state;
	struct json *v = json_object();

	json_add(v, "a", json_new_printed("{\"b\":[1,\"\\n\"]}"));
	json_add_u64(v, "c", 2);
	prints(v, "{\"a\":{\"b\":[1,\"\\n\"]},\"c\":2}");
	json_free(v);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_kinds),
	    cmocka_unit_test(test_absent),
	    cmocka_unit_test(test_syntax),
	    cmocka_unit_test(test_which_mistake),
	    cmocka_unit_test(test_numbers),
	    cmocka_unit_test(test_whole_numbers),
	    cmocka_unit_test(test_strings),
	    cmocka_unit_test(test_depth),
	    cmocka_unit_test(test_duplicates),
	    cmocka_unit_test(test_build),
	    cmocka_unit_test(test_bad_trees),
	    cmocka_unit_test(test_shortest),
	    cmocka_unit_test(test_locale),
	    cmocka_unit_test(test_values),
	    cmocka_unit_test(test_printed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
