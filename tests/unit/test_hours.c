/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "hours.h"

static struct hours
parsed(const char *text)
{
	struct hours h = {.given = false};
	struct why why = {""};

	if (hours_parse(&h, text, &why))
		fail_msg("%s: %s", text, why.text);
	return h;
}

/* day: 0 is Sunday. */
static bool
at(const struct hours *h, int day, int hour, int minute)
{
	return hours_contain(h, &(struct tm){.tm_wday = day, .tm_hour = hour, .tm_min = minute});
}

static void
nights_and_weekends(void **state)
{
	(void)state;
	struct hours h = parsed("Mon..Fri 22:00-06:00, Sat..Sun");
	static const struct {
		int day, hour, minute;
		bool yes;
	} all[] = {
	    {1, 0, 0, false}, /* Monday's night begins at 22:00; Sunday has none */
	    {1, 21, 59, false},
	    {1, 22, 0, true},
	    {1, 23, 59, true},
	    {2, 0, 0, true},
	    {2, 5, 59, true},
	    {2, 6, 0, false},
	    {2, 12, 0, false},
	    {5, 23, 0, true},
	    {6, 3, 0, true},
	    {6, 12, 0, true},
	    {6, 23, 59, true},
	    {0, 0, 0, true},
	    {0, 23, 59, true},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (at(&h, all[i].day, all[i].hour, all[i].minute) != all[i].yes)
			fail_msg("day %d, %02d:%02d", all[i].day, all[i].hour, all[i].minute);
}

/* Of a span over midnight the day is the one it begins on; Saturday's goes into Sunday, the week's last into its first. */
static void
over_midnight(void **state)
{
	(void)state;
	struct hours h = parsed("Sat 23:00-01:00");

	assert_true(at(&h, 6, 23, 0));
	assert_true(at(&h, 0, 0, 59));
	assert_false(at(&h, 0, 1, 0));
	assert_false(at(&h, 6, 0, 30));
	assert_false(at(&h, 0, 23, 30));
}

static void
other_forms(void **state)
{
	(void)state;
	struct hours every = parsed("22:00-24:00,0:00-6:00");
	struct hours around = parsed(" fri..MON\t09:30-10:00 ");
	struct hours one = parsed("Wed");
	struct hours none = {.given = false};

	for (int day = 0; day < 7; day++) {
		assert_true(at(&every, day, 23, 59));
		assert_true(at(&every, day, 5, 59));
		assert_false(at(&every, day, 6, 0));
		assert_false(at(&every, day, 21, 59));
		assert_int_equal(at(&around, day, 9, 30), day == 5 || day == 6 || day <= 1);
		assert_false(at(&around, day, 10, 0));
		assert_int_equal(at(&one, day, 0, 0), day == 3);
		assert_int_equal(at(&one, day, 23, 59), day == 3);
		assert_true(at(&none, day, 12, 0));
	}
}

static void
mistakes_are_named(void **state)
{
	static const char *const wrong[] = {"", ",", "Mon,", "Monday", "Mo", "Mon..",
	    "Mon..Fri..Sun", "22:00", "22:00-", "-06:00", "22-06", "24:00-06:00", "25:00-26:00",
	    "22:60-23:00", "22:00-24:01", "22:00-22:00", "022:00-06:00", "22:0-06:00",
	    "22:000-06:00", "Mon Tue", "22:00-06:00 Mon", "Mon 22:00-06:00 23:00-24:00", "Mon;Tue",
	    "22:00 - 06:00"};
	struct hours h;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct why why = {""};
		memset(&h, 0xa5, sizeof(h));
		struct hours before = h;
		if (hours_parse(&h, wrong[i], &why) != ERR_INVALID)
			fail_msg("\"%s\" is taken", wrong[i]);
		assert_non_null(strstr(why.text, "is not like Mon..Fri 22:00-06:00"));
		assert_memory_equal(&h, &before, sizeof(h));
	}
}

/* Minutes of a day of Berlin's that are allowed, as they pass. */
static unsigned
minutes_of(const struct hours *h, int year, int month, int day)
{
	struct tm start = {
	    .tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day, .tm_isdst = -1};
	time_t t = mktime(&start);
	unsigned n = 0;

	for (struct tm local = start; local.tm_mday == start.tm_mday; t += 60) {
		localtime_r(&t, &local);
		n += local.tm_mday == start.tm_mday && hours_contain(h, &local);
	}
	return n;
}

/* 01:00-04:00 by the clock on the wall: two hours when it is put on, four when it is put back. */
static void
summer_time(void **state)
{
	(void)state;
	struct hours h = parsed("01:00-04:00");

	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	assert_int_equal(minutes_of(&h, 2026, 3, 28), 180);
	assert_int_equal(minutes_of(&h, 2026, 3, 29), 120);
	assert_int_equal(minutes_of(&h, 2026, 10, 25), 240);
	assert_int_equal(minutes_of(&h, 2026, 10, 26), 180);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(nights_and_weekends),
	    cmocka_unit_test(over_midnight),
	    cmocka_unit_test(other_forms),
	    cmocka_unit_test(mistakes_are_named),
	    cmocka_unit_test(summer_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
