/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "address.h"

static void
test_normalise(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
	    {"https://a.example", "https://a.example:7443"},
	    {"https://A.Example:7443/", "https://a.example:7443"},
	    {"a.example", "https://a.example:7443"},
	    {"a.example:443", "https://a.example:443"},
	    {"10.0.0.1", "https://10.0.0.1:7443"},
	    {"https://[::1]:99", "https://[::1]:99"},
	    {"[fe80::1]", "https://[fe80::1]:7443"},
	};
	char got[ADDRESS_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(address_normalise(got, cases[i].in, NULL), ERR_OK);
		assert_string_equal(got, cases[i].out);
	}
}

static void
test_refused(void **state)
{
	static const char *const cases[] = {"", "http://a", "ftp://a", "https://", "https://a:0",
	    "https://a:65536", "https://a:", "https://a:x", "https://a:123456789012",
	    "https://a/path", "https://user@a", "a b", "a\nb", "https://[::1", "[]", "a?x",
	    "https://a:1:2"};
	char got[ADDRESS_MAX];
	struct why why;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (address_normalise(got, cases[i], &why) != ERR_INVALID)
			fail_msg("\"%s\" became \"%s\"", cases[i], got);
	char endless[600];
	memset(endless, 'a', sizeof(endless) - 1);
	endless[sizeof(endless) - 1] = '\0';
	assert_int_equal(address_normalise(got, endless, &why), ERR_INVALID);
}

static void
test_mirror(void **state)
{
	char got[ADDRESS_MAX], endless[600] = "http://a/";

	(void)state;
	assert_int_equal(address_mirror(got, "http://cache.site:8080/rivulet//", NULL), ERR_OK);
	assert_string_equal(got, "http://cache.site:8080/rivulet");
	assert_int_equal(address_mirror(got, "https://x", NULL), ERR_OK);
	assert_int_equal(address_mirror(got, "x", NULL), ERR_INVALID);
	assert_int_equal(address_mirror(got, "http://", NULL), ERR_INVALID);
	assert_int_equal(address_mirror(got, "http://user@host/", NULL), ERR_INVALID);
	assert_int_equal(address_mirror(got, "http://host:pass@other/", NULL), ERR_INVALID);
	assert_int_equal(address_mirror(got, "http://[::1]junk@other", NULL), ERR_INVALID);
	assert_int_equal(address_mirror(got, "http://host/a?b", NULL), ERR_INVALID);
	assert_int_equal(address_mirror(got, "http://host/a@b", NULL), ERR_OK);
	assert_int_equal(address_mirror(got, "http://a/b c", NULL), ERR_INVALID);
	assert_int_equal(address_mirror(got, "http://a/\r\nX: y", NULL), ERR_INVALID);
	memset(endless + 9, 'x', 500);
	assert_int_equal(address_mirror(got, endless, NULL), ERR_LIMIT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_normalise),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_mirror),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
