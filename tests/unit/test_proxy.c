/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "flush.h"
#include "proxy.h"

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
/* sizeof includes the NUL of the literal. */
#define BYTES(text) (text), sizeof(text) - 1
/* What follows the head in the same segment: a ClientHello. */
#define MORE_BYTES "\x16\x03\x01\x02\x00"

static enum proxy_result
parse(const void *data, size_t len, size_t *used, char peer[64])
{
	struct flush f = flush_new(data, len);
	enum proxy_result r = proxy_parse((const uint8_t *)f.data, len, used, peer);

	flush_free(&f);
	return r;
}

static const struct {
	const char *data;
	size_t len;
	const char *peer;
} good[] = {
    {BYTES("PROXY TCP4 203.0.113.7 10.0.0.1 56324 443\r\n"), "203.0.113.7"},
    {BYTES("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n"), "255.255.255.255"},
    {BYTES("PROXY TCP6 2001:DB8::0:7 ::1 1 0\r\n"), "2001:db8::7"},
    {BYTES("PROXY UNKNOWN\r\n"), ""},
    {BYTES("PROXY UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535\r\n"), ""},
    {BYTES(SIGNATURE "\x21\x11\x00\x0c\xcb\x00\x71\x07\x0a\x00\x00\x01\xdc\x04\x01\xbb"),
	"203.0.113.7"},
    {BYTES(SIGNATURE
	 "\x21\x11\x00\x10\xcb\x00\x71\x07\x0a\x00\x00\x01\xdc\x04\x01\xbb\x04\x00\x01\x00"),
	"203.0.113.7"},
    {BYTES(SIGNATURE "\x21\x21\x00\x24\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x07"
		     "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x00\x01\x01\xbb"),
	"2001:db8::7"},
    {BYTES(SIGNATURE "\x20\x00\x00\x00"), ""},
    {BYTES(SIGNATURE "\x20\x11\x00\x0c\xcb\x00\x71\x07\x0a\x00\x00\x01\xdc\x04\x01\xbb"), ""},
    {BYTES(SIGNATURE "\x21\x00\x00\x02xx"), ""},
};

/* Whole, with what follows, and cut at each byte. */
static void
heads(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		char whole[256], peer[64] = "x";
		size_t used = 0, len = good[i].len;
		memcpy(whole, good[i].data, len);
		memcpy(whole + len, MORE_BYTES, 5);
		assert_int_equal(parse(whole, len + 5, &used, peer), PROXY_DONE);
		assert_int_equal(used, len);
		assert_string_equal(peer, good[i].peer);
		for (size_t n = 0; n < len; n++) {
			assert_int_equal(parse(whole, n, &used, peer), PROXY_MORE);
			assert_int_equal(used, n);
		}
	}
}

static void
no_heads(void **state)
{
	(void)state;
	static const struct {
		const char *data;
		size_t len;
	} bad[] = {
	    {BYTES("\x16\x03\x01\x02\x00\x01")},
	    {BYTES("GET / HTTP/1.1\r\n")},
	    {BYTES("proxy TCP4 1.2.3.4 1.2.3.4 1 1\r\n")},
	    {BYTES("PROXY  TCP4 1.2.3.4 1.2.3.4 1 1\r\n")},
	    {BYTES("PROXY TCP4 1.2.3.4 1.2.3.4 1 1\n")},
	    {BYTES("PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n")},
	    {BYTES("PROXY TCP4 1.2.3.4 1.2.3.4 1 1 1\r\n")},
	    {BYTES("PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n")},
	    {BYTES("PROXY TCP4 1.2.3.4 1.2.3.4 1 +1\r\n")},
	    {BYTES("PROXY TCP4 ::1 1.2.3.4 1 1\r\n")},
	    {BYTES("PROXY TCP4 1.2.3.4 ::1 1 1\r\n")},
	    {BYTES("PROXY TCP6 1.2.3.4 1.2.3.4 1 1\r\n")},
	    {BYTES("PROXY TCP5 1.2.3.4 1.2.3.4 1 1\r\n")},
	    {BYTES("PROXY TCP4 1.2.3.4\0 1.2.3.4 1 1\r\n")},
	    {BYTES("PROXY \r\n")},
	    {BYTES("PROXY \n")},
	    {BYTES(SIGNATURE "\x11\x11\x00\x0c\xcb\x00\x71\x07\x0a\x00\x00\x01\xdc\x04\x01\xbb")},
	    {BYTES(SIGNATURE "\x22\x11\x00\x0c\xcb\x00\x71\x07\x0a\x00\x00\x01\xdc\x04\x01\xbb")},
	    {BYTES(SIGNATURE "\x21\x12\x00\x0c\xcb\x00\x71\x07\x0a\x00\x00\x01\xdc\x04\x01\xbb")},
	    {BYTES(SIGNATURE "\x21\x11\x00\x0b\xcb\x00\x71\x07\x0a\x00\x00\x01\xdc\x04\x01")},
	    {BYTES(SIGNATURE "\x21\x21\x00\x0c\xcb\x00\x71\x07\x0a\x00\x00\x01\xdc\x04\x01\xbb")},
	    {BYTES(SIGNATURE "\x21\x11\x02\x09\xcb\x00\x71\x07\x0a\x00\x00\x01\xdc\x04\x01\xbb")},
	};
	size_t used;
	char peer[64];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (parse(bad[i].data, bad[i].len, &used, peer) != PROXY_BAD)
			fail_msg("row %zu was taken", i);
}

/* The longest of each kind, and one byte more. */
static void
limits(void **state)
{
	(void)state;
	char text[PROXY_HEAD_MAX + 1], peer[64];
	size_t used;

	memset(text, 'x', sizeof(text));
	memcpy(text, BYTES("PROXY UNKNOWN "));
	memcpy(text + 105, "\r\n", 2);
	assert_int_equal(parse(text, sizeof(text), &used, peer), PROXY_DONE);
	assert_int_equal(used, 107);
	memcpy(text + 105, "x\r\n", 3);
	assert_int_equal(parse(text, 106, &used, peer), PROXY_MORE);
	assert_int_equal(parse(text, 107, &used, peer), PROXY_BAD);
	memcpy(text, BYTES(SIGNATURE "\x20\x00\x02\x08"));
	assert_int_equal(parse(text, PROXY_HEAD_MAX - 1, &used, peer), PROXY_MORE);
	assert_int_equal(parse(text, sizeof(text), &used, peer), PROXY_DONE);
	assert_int_equal(used, PROXY_HEAD_MAX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(heads), cmocka_unit_test(no_heads), cmocka_unit_test(limits)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
