/* stages: gcc openssl address */
/* Queries, and the heads of responses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "buf.h"
#include "http.h"
#include "problem.h"

static void
query(const char *text, const char *name, const char *want)
{
	struct http_request r = {.keep_alive = false};
	char out[8] = "";

	snprintf(r.query, sizeof(r.query), "%s", text);
	bool found = http_query(&r, name, out, sizeof(out));
	if (found != (want != NULL) || (want && strcmp(out, want) != 0))
		fail_msg("%s in '%s': %s", name, text, found ? out : "not found");
}

static void
queries(void **state)
{
	(void)state;
	query("", "a", NULL);
	query("a=1", "a", "1");
	query("a=1&b=2", "b", "2");
	query("a=&b=2", "a", "");
	query("a=1&a=2", "a", "1");
	query("aa=1&a=2", "a", "2");
	query("a", "a", NULL);
	query("a&a=3", "a", "3");
	query("&&a=3&", "a", "3");
	query("ab=3", "a", NULL);
	query("a=b=c", "a", "b=c");
	query("a=1234567", "a", "1234567");
	/* Not a number cut short, nor one that was not given. */
	query("a=12345678", "a", "");
	query("a=00000000000000000000000005", "a", "");
	/* Escapes are of values, and what they stand for separates nothing. */
	query("a=%41%62", "a", "Ab");
	query("a=x%26b%3d1&b=2", "b", "2");
	query("a=x%26b%3D1", "a", "x&b=1");
	query("a=%c3%b6+x%2B", "a", "\xc3\xb6 x+");
	query("a=%25%34%31", "a", "%41");
	query("%61=1", "a", NULL);
	query("a=%31%32%33%34%35%36%37", "a", "1234567");
	query("a=%31%32%33%34%35%36%37%38", "a", "");
}

static void
items(void **state)
{
	static const struct {
		const char *query, *want; /* the items of `a`, each in brackets */
	} rows[] = {
	    {"", ""},
	    {"a=1", "[1]"},
	    {"a=", "[]"},
	    {"a=1,2", "[1][2]"},
	    {"a=1,,2,", "[1][][2][]"},
	    {"a=1&b=9,9&a=2,3&a", "[1][2][3]"},
	    {"aa=1&a=2", "[2]"},
	    {"a=x%3dy%2Cz,%26", "[x=y,z][&]"},
	    {"b=1&a=2&", "[2]"},
	    {"a=12345678,1", "[][1]"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct http_request r = {.keep_alive = false};
		char got[64] = "", out[8];
		snprintf(r.query, sizeof(r.query), "%s", rows[i].query);
		for (size_t n = 0; http_query_item(&r, "a", n, out, sizeof(out)); n++) {
			assert_true(n < 8);
			snprintf(got + strlen(got), sizeof(got) - strlen(got), "[%s]", out);
		}
		if (strcmp(got, rows[i].want) != 0)
			fail_msg("%s: %s", rows[i].query, got);
	}
}

static void
escapes(void **state)
{
	static const char *const good[] = {
	    "", "a=%41&%42=c", "a=%c3%b6", "a=+%2B%25", "a=%f0%9f%8c%8a"};
	static const char *const bad[] = {"a=%", "a=%4", "a=%4g", "a=%g4", "a=%%41", "a=%00",
	    "a=%0d%0a", "a=%1F", "a=%7F", "a=%ff", "a=%c3", "a=%c3&b=1", "a=%c3,%b6", "a=%c0%af",
	    "a=%ed%a0%80"};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		if (!http_query_sound(good[i], strlen(good[i])))
			fail_msg("%s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (http_query_sound(bad[i], strlen(bad[i])))
			fail_msg("%s", bad[i]);
	assert_false(http_query_sound("a=%41", 4));
}

static void
print(const struct http_head *h, const char *want)
{
	struct buf b;

	buf_init(&b, 1024);
	assert_int_equal(http_head_print(&b, h), ERR_OK);
	assert_string_equal(buf_str(&b), want);
	buf_deinit(&b);
}

static void
response_heads(void **state)
{
	(void)state;
	print(&(struct http_head){200, "application/json", 12, false, "", NULL, 0, false},
	    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n");
	print(&(struct http_head){503, NULL, 0, true, "Retry-After: 5\r\n", NULL, 0, false},
	    "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n"
	    "Retry-After: 5\r\n\r\n");
	print(&(struct http_head){204, NULL, 0, false, NULL, NULL, 0, false},
	    "HTTP/1.1 204 No Content\r\n\r\n");
	print(&(struct http_head){304, NULL, 9, false, "ETag: \"e\"\r\n", NULL, 0, false},
	    "HTTP/1.1 304 Not Modified\r\nETag: \"e\"\r\n\r\n");
	print(&(struct http_head){100, NULL, 0, false, NULL, NULL, 0, false},
	    "HTTP/1.1 100 Continue\r\n\r\n");
	print(&(struct http_head){.status = 100, .request = "0a-1"},
	    "HTTP/1.1 100 Continue\r\nRivulet-Request: 0a-1\r\n\r\n");
	print(&(struct http_head){206, NULL, UINT64_MAX, false, NULL, NULL, 0, false},
	    "HTTP/1.1 206 Partial Content\r\nContent-Length: 18446744073709551615\r\n\r\n");
	print(&(struct http_head){.status = 200, .content_type = "a/b", .chunked = true},
	    "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nTransfer-Encoding: chunked\r\n\r\n");
	assert_string_equal(http_reason(507), "Insufficient Storage");
	/* The example of RFC 9110, section 5.6.7. */
	print(&(struct http_head){204, NULL, 0, false, NULL, NULL, 784111777, false},
	    "HTTP/1.1 204 No Content\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n");
}

static void
each_problem_has_a_reason(void **state)
{
	(void)state;
	for (unsigned p = PROBLEM_NONE; p <= PROBLEM_UNKNOWN; p++)
		if (*http_reason(problem_status(p)) == '<')
			fail_msg("%u", problem_status(p));
}

static void
response_without_room(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 20);
	assert_int_equal(
	    http_head_print(&b, &(struct http_head){200, "a/b", 1, true, "", NULL, 0, false}),
	    ERR_LIMIT);
	buf_deinit(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(queries),
	    cmocka_unit_test(items),
	    cmocka_unit_test(escapes),
	    cmocka_unit_test(response_heads),
	    cmocka_unit_test(each_problem_has_a_reason),
	    cmocka_unit_test(response_without_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
