/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "subnet.h"

static void
ranges(void **state)
{
	(void)state;
	static const struct {
		const char *range, *address;
		bool in;
	} rows[] = {
	    {"10.0.0.5", "10.0.0.5", true},
	    {"10.0.0.5", "10.0.0.4", false},
	    {"10.0.0.5", "::ffff:10.0.0.5", true},
	    {"10.0.0.0/8", "10.255.1.2", true},
	    {"10.0.0.0/8", "11.0.0.0", false},
	    {"10.0.0.128/25", "10.0.0.127", false},
	    {"10.0.0.128/25", "10.0.0.255", true},
	    {"0.0.0.0/0", "255.1.2.3", true},
	    {"0.0.0.0/0", "::1", false},
	    {"::/0", "::1", true},
	    {"::/0", "1.2.3.4", true},
	    {"2001:db8::/33", "2001:db8:7fff::1", true},
	    {"2001:db8::/33", "2001:db8:8000::1", false},
	    {"::1", "::1", true},
	    {"::1/128", "::2", false},
	    {"10.0.0.5", "uid:0 pid:1", false},
	    {"::/0", "", false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct subnet s;
		assert_true(subnet_parse(&s, rows[i].range));
		if (subnet_has(&s, rows[i].address) != rows[i].in)
			fail_msg("%s in %s", rows[i].address, rows[i].range);
	}
}

static void
no_ranges(void **state)
{
	(void)state;
	static const char *const texts[] = {"", "/", "/8", "10.0.0", "10.0.0.5/", "10.0.0.5/33",
	    "10.0.0.0/-1", "10.0.0.0/ 8", "10.0.0.0/8 ", " 10.0.0.0/8", "10.0.0.0/8/8",
	    "10.0.0.1/8", "::/129", "2001:db8::1/64", "localhost", "10.0.0.5:80", "[::1]",
	    "1111:2222:3333:4444:5555:6666:7777:8888:9999:1111:2222:3333"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct subnet s;
		if (subnet_parse(&s, texts[i]))
			fail_msg("\"%s\" was taken", texts[i]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(ranges), cmocka_unit_test(no_ranges)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
