/* stages: gcc address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "date.h"

static int64_t
seconds(int year, int month, int day, int hour, int minute, int second)
{
	return date_seconds(&(struct tm){.tm_year = year - 1900,
	    .tm_mon = month - 1,
	    .tm_mday = day,
	    .tm_hour = hour,
	    .tm_min = minute,
	    .tm_sec = second});
}

static void
known_moments(void **state)
{
	(void)state;
	assert_int_equal(seconds(1970, 1, 1, 0, 0, 0), 0);
	assert_int_equal(seconds(2000, 1, 1, 0, 0, 0), 946684800);
	assert_int_equal(seconds(2038, 1, 19, 3, 14, 8), INT64_C(2147483648));
	assert_int_equal(seconds(2046, 11, 23, 12, 0, 0), INT64_C(2426587200));
	assert_int_equal(seconds(2100, 3, 1, 0, 0, 0) - seconds(2100, 2, 28, 0, 0, 0), 86400);
	assert_int_equal(seconds(2000, 3, 1, 0, 0, 0) - seconds(2000, 2, 28, 0, 0, 0), 2 * 86400);
	assert_int_equal(seconds(9999, 12, 31, 23, 59, 59), INT64_C(253402300799));
	assert_int_equal(seconds(1969, 12, 31, 23, 59, 59), -1);
}

/* Every day from 1900 on, and a moment in it. */
static void
there_and_back(void **state)
{
	struct tm tm, libc;

	(void)state;
	for (int64_t at = INT64_C(-2208988800); at < INT64_C(253402300800); at += 86400 + 17) {
		date_parts(&tm, at);
		assert_int_equal(date_seconds(&tm), at);
		time_t t = (time_t)at;
		if (t != at || !gmtime_r(&t, &libc))
			continue;
		assert_true(tm.tm_year == libc.tm_year && tm.tm_mon == libc.tm_mon &&
		    tm.tm_mday == libc.tm_mday && tm.tm_hour == libc.tm_hour &&
		    tm.tm_min == libc.tm_min && tm.tm_sec == libc.tm_sec);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(known_moments),
	    cmocka_unit_test(there_and_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
