/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flush.h"
#include "http.h"

#define HOST "Host: c\r\n"
#define GET "GET / HTTP/1.1\r\n" HOST
#define PUT "PUT /v1/deltas/1 HTTP/1.1\r\n" HOST
#define PATCH "PATCH /v1/deltas/a HTTP/1.1\r\n" HOST "Content-Length: 5\r\n"

struct parsed {
	struct http_request r;
	enum err e;
	unsigned status;
	struct why why;
};

/* Parses bytes that end right before an unreadable page. */
static struct parsed
parse_bytes(const char *head, size_t len)
{
	struct flush f = flush_new(head, len);
	struct parsed p = {.status = 999};

	p.e = http_request_parse(&p.r, f.data, len, &p.status, &p.why);
	flush_free(&f);
	return p;
}

static struct parsed
parse(const char *head)
{
	struct parsed p = parse_bytes(head, strlen(head));

	if (p.e)
		fail_msg("refused: %s: %s", p.why.text, head);
	return p;
}

static void
refused_bytes(const char *head, size_t len, unsigned status)
{
	struct parsed p = parse_bytes(head, len);

	if (p.e != ERR_INVALID || p.status != status || !p.why.text[0])
		fail_msg("%s, status %u: %s", err_name(p.e), p.status, head);
	http_request_deinit(&p.r);
}

static void
refused(const char *head, unsigned status)
{
	refused_bytes(head, strlen(head), status);
}

/* --- the end of a head */

static size_t
head_length(const char *data, size_t len)
{
	size_t seen = 0;

	return http_head_length(data, len, &seen);
}

/* A bare LF is enough to refuse a head: nothing may wait for an end that a peer of this kind does not send. */
static void
a_bare_lf_ends_a_head(void **state)
{
	static const struct {
		const char *text;
		size_t len;
	} rows[] = {{"\n", 1}, {"GET / HTTP/1.1\n\nHost: c\n\n", 15}, {GET "\n\n", sizeof(GET)},
	    {GET "X: y\n\r\n", sizeof(GET) + 4}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		assert_int_equal(head_length(rows[i].text, strlen(rows[i].text)), rows[i].len);
		refused_bytes(rows[i].text, rows[i].len, 400);
	}
}

/* What was looked at is not looked at again, wherever the reads cut the block. */
static void
the_end_is_found_byte_by_byte(void **state)
{
	static const char head[] = GET "X: y\r\n\r\n";
	size_t seen = 0;

	(void)state;
	for (size_t n = 1; n < sizeof(head) - 1; n++) {
		assert_int_equal(http_head_length(head, n, &seen), 0);
		assert_int_equal(seen, n);
	}
	assert_int_equal(http_head_length(head, sizeof(head) - 1, &seen), sizeof(head) - 1);
	/* Bytes before `seen` do not count: were they read, this one would end the block. */
	seen = 5;
	assert_int_equal(http_head_length("abc\ndefg", 8, &seen), 0);
}

static void
end_of_head(void **state)
{
	static const char two[] = GET "\r\nPUT / HTTP/1.1\r\n" HOST "\r\n";
	static const char *const open[] = {"", "\r\n", "\r\n\r", GET, GET "\r", GET "X: y"};

	(void)state;
	for (size_t i = 0; i < sizeof(open) / sizeof(*open); i++) {
		struct flush f = flush_new(open[i], strlen(open[i]));
		assert_int_equal(head_length(f.data, strlen(open[i])), 0);
		flush_free(&f);
	}
	/* The first of two pipelined heads, and it alone is parsed. */
	assert_int_equal(head_length(two, sizeof(two) - 1), strlen(GET "\r\n"));
	struct parsed p = parse_bytes(two, head_length(two, sizeof(two) - 1));
	assert_int_equal(p.e, ERR_OK);
	assert_int_equal(p.r.method, VERB_GET);
	http_request_deinit(&p.r);
}

/* A head that fills its buffer to the last byte. */
static void
head_of_exactly_the_limit(void **state)
{
	size_t limit = 32768, used = strlen(GET);
	char *head = malloc(limit);

	(void)state;
	assert_non_null(head);
	memcpy(head, GET, used);
	while (used < limit - 2) {
		size_t left = limit - 2 - used, n = left < 1000 + 5 ? left : 1000;
		memset(head + used, 'x', n);
		memcpy(head + used, "X: ", 3);
		memcpy(head + used + n - 2, "\r\n", 2);
		used += n;
	}
	memcpy(head + used, "\r\n", 2);
	struct flush f = flush_new(head, limit);
	assert_int_equal(head_length(f.data, limit), limit);
	assert_int_equal(head_length(f.data, limit - 1), 0);
	flush_free(&f);
	struct parsed p = parse_bytes(head, limit);
	assert_int_equal(p.e, ERR_OK);
	http_request_deinit(&p.r);
	free(head);
}

/* --- what is taken */

static void
a_whole_request(void **state)
{
	struct parsed p = parse("PUT /v1/deltas/0a?x=1&y HTTP/1.1\r\nhost:c:7443\r\n"
				"Content-Length: 123456789012345678\r\nEXPECT: 100-Continue\r\n"
				"Authorization: Bearer abc\r\nRange: bytes=0-1\r\n"
				"If-None-Match: \"e\"\r\nRivulet-Manifest: :AAAA:\r\n"
				"Rivulet-Report: :BBBB:\r\nX-Other: \t \xc3\xa4 b\r\n\r\n");

	(void)state;
	assert_int_equal(p.r.method, VERB_PUT);
	assert_string_equal(p.r.path, "/v1/deltas/0a");
	assert_string_equal(p.r.query, "x=1&y");
	assert_true(p.r.has_length && p.r.expect_continue && p.r.keep_alive);
	assert_int_equal(p.r.length, 123456789012345678);
	assert_string_equal(p.r.authorization, "Bearer abc");
	assert_string_equal(p.r.range, "bytes=0-1");
	assert_string_equal(p.r.if_none_match, "\"e\"");
	assert_string_equal(p.r.manifest, ":AAAA:");
	assert_string_equal(p.r.report, ":BBBB:");
	http_request_deinit(&p.r);
	assert_null(p.r.manifest);
}

static void
the_least_request(void **state)
{
	struct parsed p = parse(GET "\r\n");

	(void)state;
	assert_int_equal(p.r.method, VERB_GET);
	assert_string_equal(p.r.path, "/");
	assert_string_equal(p.r.query, "");
	assert_false(p.r.has_length || p.r.expect_continue);
	assert_int_equal(p.r.length, 0);
	assert_true(p.r.keep_alive);
	assert_null(p.r.manifest);
	assert_null(p.r.report);
	assert_string_equal(p.r.authorization, "");
}

static void
methods(void **state)
{
	static const struct {
		const char *text;
		enum http_verb verb;
	} known[] = {{"GET", VERB_GET}, {"HEAD", VERB_HEAD}, {"PUT", VERB_PUT}, {"POST", VERB_POST},
	    {"DELETE", VERB_DELETE}, {"PATCH", VERB_PATCH}, {"OPTIONS", VERB_OTHER},
	    {"TRACE", VERB_OTHER}, {"PURGE", VERB_OTHER}};
	char head[64];

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		snprintf(head, sizeof(head), "%s / HTTP/1.1\r\n" HOST "\r\n", known[i].text);
		assert_int_equal(parse(head).r.method, known[i].verb);
		if (known[i].verb != VERB_OTHER)
			assert_string_equal(http_verb_name(known[i].verb), known[i].text);
	}
	refused("get / HTTP/1.1\r\n" HOST "\r\n", 400);
	refused("BREW / HTTP/1.1\r\n" HOST "\r\n", 400);
	refused("GE T / HTTP/1.1\r\n" HOST "\r\n", 400);
}

static void
keeping_the_connection(void **state)
{
	(void)state;
	assert_false(parse(GET "Connection: close\r\n\r\n").r.keep_alive);
	assert_false(parse(GET "Connection: x, Close\r\n\r\n").r.keep_alive);
	assert_false(parse(GET "Connection: ,clos,\tclose\t,\r\n\r\n").r.keep_alive);
}

/* Blanks around a value are no part of it (RFC 9110, 5.5). */
static void
blanks_around_values(void **state)
{
	struct parsed p = parse("PUT / HTTP/1.1\r\nHost:\t c \r\nContent-Length: \t5 \r\n"
				"Expect: 100-continue \r\nRange:  bytes=1-\t\r\n"
				"Rivulet-Manifest: :AA==: \r\n\r\n");

	(void)state;
	assert_int_equal(p.r.length, 5);
	assert_true(p.r.expect_continue);
	assert_string_equal(p.r.range, "bytes=1-");
	assert_string_equal(p.r.manifest, ":AA==:");
	http_request_deinit(&p.r);
}

/* Paths are compared with the routes byte by byte: dots mean nothing, so they may pass. */
static void
dots_are_bytes(void **state)
{
	struct parsed p = parse("GET /v1/models/../../etc/passwd HTTP/1.1\r\n" HOST "\r\n");

	(void)state;
	assert_string_equal(p.r.path, "/v1/models/../../etc/passwd");
}

/* Digits alone, and few enough. */
static void
upload_offset(void **state)
{
	static const char *const bad[] = {"", "-1", "+1", "0x1", "1 ", "1,2", "1.0", "a", " 1 2",
	    "1000000000000000000", "18446744073709551616"};
	char head[256];

	(void)state;
	struct parsed p = parse(PATCH "Upload-Offset: 999999999999999999\r\n\r\n");
	assert_true(p.r.has_offset);
	assert_true(p.r.offset == 999999999999999999ull && p.r.length == 5);
	p = parse(PATCH "upload-offset:007\r\n\r\n");
	assert_int_equal(p.r.offset, 7);
	assert_false(parse(PATCH "\r\n").r.has_offset);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		snprintf(head, sizeof(head), PATCH "Upload-Offset: %s\r\n\r\n", bad[i]);
		/* A blank behind the value is no part of it. */
		if (strcmp(bad[i], "1 ") == 0)
			assert_int_equal(parse(head).r.offset, 1);
		else
			refused(head, 400);
	}
}

/* --- what is refused */

static void
lines_and_names(void **state)
{
	static const char *const heads[] = {
	    "",
	    "\r\n",
	    "\r\n\r\n",
	    "GET / HTTP/1.1\r\n",
	    GET,
	    /* bare LF and CR */
	    "GET / HTTP/1.1\nHost: c\r\n\r\n",
	    "GET / HTTP/1.1\r\nHost: c\nX: y\r\n\r\n",
	    "GET / HTTP/1.1\r\nHost: c\n\r\n\r\n",
	    "GET / HTTP/1.1\r\n\nHost: c\r\n\r\n",
	    "\nGET / HTTP/1.1\r\n" HOST "\r\n",
	    "\r\nGET / HTTP/1.1\r\n" HOST "\r\n",
	    "GET / HTTP/1.1\r\nHost: c\r\rX: y\r\n\r\n",
	    "GET / HTTP/1.1\r\r\nHost: c\r\n\r\n",
	    /* names */
	    "GET / HTTP/1.1\r\nHost : c\r\n\r\n",
	    GET "X\t: y\r\n\r\n",
	    GET ": y\r\n\r\n",
	    GET "X\r\n\r\n",
	    GET "X(: y\r\n\r\n",
	    GET "X\xe4: y\r\n\r\n",
	    GET "X=: y\r\n\r\n",
	    /* folded lines */
	    GET " folded: y\r\n\r\n",
	    GET "X: y\r\n z\r\n\r\n",
	    GET "X: y\r\n\tz\r\n\r\n",
	    GET "X: y\r\n \r\n\r\n",
	    /* control characters */
	    GET "X: a\x01z\r\n\r\n",
	    GET "X: a\x7f\r\n\r\n",
	    GET "X: a\x1b[0m\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++)
		refused(heads[i], 400);
}

static void
zero_bytes(void **state)
{
	static const char in_value[] = GET "X: a\0b\r\n\r\n";
	static const char in_name[] = GET "X\0: a\r\n\r\n";
	static const char in_path[] = "GET /a\0b HTTP/1.1\r\n" HOST "\r\n";

	(void)state;
	refused_bytes(in_value, sizeof(in_value) - 1, 400);
	refused_bytes(in_name, sizeof(in_name) - 1, 400);
	refused_bytes(in_path, sizeof(in_path) - 1, 400);
}

static void
request_lines(void **state)
{
	static const char *const targets[] = {"GET /a b HTTP/1.1", "GET  / HTTP/1.1",
	    "GET /  HTTP/1.1", "GET / HTTP/1.1 ", " GET / HTTP/1.1", "GET /", "GET", "/ HTTP/1.1",
	    "GET\t/\tHTTP/1.1",
	    /* bytes outside ASCII, escapes, fragments */
	    "GET /\xc3\xa4 HTTP/1.1", "GET /\x80 HTTP/1.1", "GET /\x7f HTTP/1.1",
	    "G\xc4T / HTTP/1.1", "GET /%2e%2e HTTP/1.1", "GET /%00 HTTP/1.1",
	    "GET /a?b=%4 HTTP/1.1", "GET /#a HTTP/1.1",
	    /* other forms of a target */
	    "GET http://c/ HTTP/1.1", "GET * HTTP/1.1", "OPTIONS * HTTP/1.1", "GET ?a HTTP/1.1",
	    "CONNECT c:443 HTTP/1.1", "CONNECT /c HTTP/1.1", "GET a HTTP/1.1"};
	static const char *const versions[] = {"GET / HTTP/9.9", "GET / HTTP/2.0", "GET / HTTP/1.2",
	    "GET / HTTP/0.9", "GET / HTTP/1.1a", "GET / HTTP/1.", "GET / http/1.1", "GET / HTTP/11",
	    "GET / HTTP/1.10", "GET / HTTP/ 1.1", "GET / ICE/1.0", "GET / HTTP/1,1"};
	char head[128];

	(void)state;
	for (size_t i = 0; i < sizeof(targets) / sizeof(*targets); i++) {
		snprintf(head, sizeof(head), "%s\r\n" HOST "\r\n", targets[i]);
		refused(head, 400);
	}
	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		snprintf(head, sizeof(head), "%s\r\n" HOST "\r\n", versions[i]);
		struct parsed p = parse_bytes(head, strlen(head));
		if (p.e != ERR_INVALID || (p.status != 505 && strchr(versions[i] + 6, ' ') == NULL))
			fail_msg("%s, status %u: %s", err_name(p.e), p.status, versions[i]);
	}
}

static void
hosts(void **state)
{
	(void)state;
	refused("GET / HTTP/1.1\r\n\r\n", 400);
	refused("GET / HTTP/1.0\r\n" HOST "\r\n", 505);
	refused("GET / HTTP/1.0\r\n" HOST "Connection: keep-alive\r\n\r\n", 505);
	refused("GET / HTTP/1.1\r\nHost:\r\n\r\n", 400);
	refused("GET / HTTP/1.1\r\nHost: \t\r\n\r\n", 400);
	refused("GET / HTTP/1.1\r\nX-Host: c\r\n\r\n", 400);
	refused("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400);
	refused("GET / HTTP/1.1\r\nHost: a,b\r\n\r\n", 400);
	refused("GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", 400);
	refused("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400);
	refused(GET HOST "\r\n", 400);
	refused(GET "HOST: d\r\n\r\n", 400);
}

static void
lengths(void **state)
{
	static const char *const values[] = {"", " ", "-1", "+1", "1 2", "1,2", "1, 1", "0x10",
	    "1e3", "1.0", "a", "12a", "18446744073709551616", "18446744073709551615",
	    "9223372036854775808", "00000000000000000005", "1000000000000000000"};
	char head[256];

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		snprintf(head, sizeof(head), PUT "Content-Length: %s\r\n\r\n", values[i]);
		refused(head, 400);
	}
	refused(PUT "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", 400);
	refused(PUT "Content-Length: 5\r\ncontent-length: 6\r\n\r\n", 400);
	struct parsed p = parse(PUT "Content-Length: 999999999999999999\r\n\r\n");
	assert_int_equal(p.r.length, 999999999999999999);
	assert_true(parse(PUT "Content-Length: 0\r\n\r\n").r.has_length);
	assert_false(parse(PUT "\r\n").r.has_length);
}

/* No Transfer-Encoding of any kind reaches a handler: what two parsers read differently is not read at all. */
static void
transfer_encodings(void **state)
{
	static const char *const values[] = {
	    "chunked", "gzip, chunked", "Chunked", "identity", "xchunked", "", "chunked, identity"};
	char head[256];

	(void)state;
	refused(PUT "Transfer-Encoding: chunked\r\n\r\n", 411);
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		for (int with_length = 0; with_length < 3; with_length++) {
			snprintf(head, sizeof(head), PUT "%sTransfer-Encoding: %s\r\n%s\r\n",
			    with_length == 1 ? "Content-Length: 5\r\n" : "", values[i],
			    with_length == 2 ? "Content-Length: 5\r\n" : "");
			struct parsed p = parse_bytes(head, strlen(head));
			if (p.e != ERR_INVALID || (p.status != 411 && p.status != 400))
				fail_msg("%s, status %u: %s", err_name(p.e), p.status, head);
		}
	}
}

static void
expectations_and_upgrades(void **state)
{
	(void)state;
	refused(PUT "Expect: 200-ok\r\n\r\n", 417);
	refused(PUT "Expect:\r\n\r\n", 417);
	refused(PUT "Expect: 100-continue, x\r\n\r\n", 417);
	refused(PUT "Expect: 100-continue\r\nExpect: 100-continue\r\n\r\n", 400);
	refused(GET "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 400);
	refused(GET "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n", 400);
	refused("PRI * HTTP/2.0\r\n\r\n", 400);
}

/* A header that decides something may come once. */
static void
repeated_headers(void **state)
{
	static const char *const names[] = {"Authorization", "Range", "If-None-Match",
	    "Rivulet-Manifest", "Rivulet-Report", "Transfer-Encoding", "Upload-Offset"};
	char head[256];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(head, sizeof(head), GET "%s: 1\r\n%s: 2\r\n\r\n", names[i], names[i]);
		refused(head, 400);
	}
	assert_int_equal(parse(GET "X: a\r\nX: a\r\n\r\n").e, ERR_OK);
}

/* name: n times x */
static void
long_value(const char *name, size_t n, unsigned status)
{
	char *head = malloc(n + 256);

	assert_non_null(head);
	int used = sprintf(head, GET "%s: ", name);
	memset(head + used, 'x', n);
	strcpy(head + (size_t)used + n, "\r\n\r\n");
	if (status) {
		refused(head, status);
	} else {
		struct parsed p = parse(head);
		http_request_deinit(&p.r);
	}
	free(head);
}

static void
long_values(void **state)
{
	(void)state;
	long_value("Authorization", 255, 0);
	long_value("Authorization", 256, 431);
	long_value("Range", 64, 431);
	long_value("If-None-Match", 160, 431);
	long_value("Rivulet-Manifest", HTTP_VALUE_MAX - 1, 0);
	long_value("Rivulet-Manifest", HTTP_VALUE_MAX, 431);
	long_value("Rivulet-Report", HTTP_VALUE_MAX, 431);
	long_value("X-Other", 30000, 0);
	long_value("X-Other", HTTP_HEAD_MAX - strlen(GET "X-Other: \r\n\r\n"), 0);
	long_value("X-Other", HTTP_HEAD_MAX, 400);
}

static void
long_paths(void **state)
{
	char path[HTTP_PATH_MAX + 1], head[HTTP_PATH_MAX + 64];

	(void)state;
	for (size_t n = HTTP_PATH_MAX - 1; n <= HTTP_PATH_MAX; n++) {
		memset(path, 'p', n);
		path[0] = '/';
		path[n] = '\0';
		snprintf(head, sizeof(head), "GET %s HTTP/1.1\r\n" HOST "\r\n", path);
		if (n < HTTP_PATH_MAX)
			assert_string_equal(parse(head).r.path, path);
		else
			refused(head, 414);
		path[10] = '?';
		snprintf(head, sizeof(head), "GET %s HTTP/1.1\r\n" HOST "\r\n", path);
		if (n < HTTP_PATH_MAX)
			assert_string_equal(parse(head).r.query, path + 11);
		else
			refused(head, 414);
	}
}

/* A request cut anywhere is refused, and nothing behind its end is read. */
static void
every_prefix(void **state)
{
	static const char whole[] = PUT "Content-Length: 5\r\nRivulet-Manifest: :AA==:\r\n"
					"Expect: 100-continue\r\nRange: bytes=0-\r\n\r\n";

	(void)state;
	for (size_t n = 0; n < sizeof(whole) - 1; n++) {
		struct parsed p = parse_bytes(whole, n);
		assert_int_equal(p.e, ERR_INVALID);
		http_request_deinit(&p.r);
	}
	struct parsed p = parse(whole);
	http_request_deinit(&p.r);
}

static void
query_words(void **state)
{
	static const struct {
		const char *query, *unknown; /* NULL: all are known */
	} rows[] = {
	    {"", NULL},
	    {"from=1", NULL},
	    {"from=1&stop-jobs=1", NULL},
	    {"from", NULL},
	    {"&from=1&", NULL},
	    {"fro=1", "fro"},
	    {"from=1&limi=2", "limi"},
	    {"fromm=1", "fromm"},
	    {"=1", ""},
	    {"from=a=b&x", "x"},
	    {"a234567890123456789012345678901234567890=1", "a234567890123456789012345678901"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct http_request r = {.path = "/"};
		char unknown[HTTP_WORD_MAX] = "-";
		snprintf(r.query, sizeof(r.query), "%s", rows[i].query);
		bool known = http_query_knows(&r, "from limit stop-jobs", unknown);
		if (known != !rows[i].unknown || (!known && strcmp(unknown, rows[i].unknown) != 0))
			fail_msg("%s: \"%s\"", rows[i].query, unknown);
		if (rows[i].query[0])
			assert_false(http_query_knows(&r, "", unknown) && rows[i].unknown);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(end_of_head),
	    cmocka_unit_test(a_bare_lf_ends_a_head),
	    cmocka_unit_test(the_end_is_found_byte_by_byte),
	    cmocka_unit_test(head_of_exactly_the_limit),
	    cmocka_unit_test(a_whole_request),
	    cmocka_unit_test(the_least_request),
	    cmocka_unit_test(methods),
	    cmocka_unit_test(keeping_the_connection),
	    cmocka_unit_test(upload_offset),
	    cmocka_unit_test(blanks_around_values),
	    cmocka_unit_test(dots_are_bytes),
	    cmocka_unit_test(lines_and_names),
	    cmocka_unit_test(zero_bytes),
	    cmocka_unit_test(request_lines),
	    cmocka_unit_test(hosts),
	    cmocka_unit_test(lengths),
	    cmocka_unit_test(transfer_encodings),
	    cmocka_unit_test(expectations_and_upgrades),
	    cmocka_unit_test(repeated_headers),
	    cmocka_unit_test(long_values),
	    cmocka_unit_test(long_paths),
	    cmocka_unit_test(every_prefix),
	    cmocka_unit_test(query_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
