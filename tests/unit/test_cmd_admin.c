/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "admin.h"

static void
test_duration(void **state)
{
	static const char *const wrong[] = {
	    "", "h", "0", "-1h", "1.5h", "1w", "1hh", "99999999999999999d"};
	uint64_t s;

	(void)state;
	assert_true(cmd_admin_duration("90", &s) && s == 90);
	assert_true(cmd_admin_duration("15m", &s) && s == 900);
	assert_true(cmd_admin_duration("24h", &s) && s == 86400);
	assert_true(cmd_admin_duration("7d", &s) && s == 604800);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(cmd_admin_duration(wrong[i], &s));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_duration)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
