#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "renew.h"

#define DAY 86400
#define MADE 1700000000 /* when the certificates here were issued; they begin two days before */

/* A certificate of 90 days, of which the coordinator says that it is to be renewed after 60. */
#define YEARLY MADE - 2 * DAY, MADE + 90 * DAY

static void
check(struct renew_facts f, enum renew_need need, int64_t due_day)
{
	int64_t at = 0;

	assert_int_equal(renew_needed(&f, &at), need);
	assert_int_equal((at - MADE) / DAY, due_day);
}

static void
test_dates(void **state)
{
	(void)state;
	static const struct {
		int day; /* now */
		int after; /* renew_after; 0: not said */
		bool signer;
		enum renew_need need;
		int due;
	} rows[] = {
	    {0, 60, true, RENEW_NO, 60},
	    {59, 60, true, RENEW_NO, 60},
	    {60, 60, true, RENEW_DUE, 60},
	    {89, 60, true, RENEW_DUE, 60},
	    {90, 60, true, RENEW_EXPIRED, 60},
	    {4000, 60, true, RENEW_EXPIRED, 60},
	    {0, 60, false, RENEW_SIGNER, 60},
	    {61, 60, false, RENEW_DUE, 60},
	    /* The certificate's own dates say it as well, and the earlier one counts. */
	    {59, 0, true, RENEW_NO, 60},
	    {60, 0, true, RENEW_DUE, 60},
	    {60, 3000, true, RENEW_DUE, 60},
	    {10, 10, true, RENEW_DUE, 10},
	    {9, 10, true, RENEW_NO, 10},
	    /* A clock before the certificate's time: nothing to do. */
	    {-500, 60, true, RENEW_NO, 60},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		check(
		    (struct renew_facts){MADE + rows[i].day * DAY, YEARLY,
			rows[i].after ? MADE + (int64_t)rows[i].after * DAY : 0, rows[i].signer, 0},
		    rows[i].need, rows[i].due);
}

/* Certificates of some seconds, as tests use them, and one without the two days before. */
static void
test_short(void **state)
{
	struct renew_facts f = {MADE + 19, MADE - 2 * DAY, MADE + 30, 0, true, 0};
	int64_t at;

	(void)state;
	assert_int_equal(renew_needed(&f, &at), RENEW_NO);
	assert_int_equal(at, MADE + 20);
	f.now = MADE + 20;
	assert_int_equal(renew_needed(&f, &at), RENEW_DUE);
	f.not_before = MADE;
	assert_int_equal(renew_needed(&f, &at), RENEW_DUE);
	assert_int_equal(at, MADE + 20);
}

/* Devices that joined together do not renew together, and none waits past the first quarter of the time left. */
static void
test_spread(void **state)
{
	struct renew_facts f = {MADE, YEARLY, MADE + 50 * DAY, true, 0.5};
	int64_t at;

	(void)state;
	assert_int_equal(renew_needed(&f, &at), RENEW_NO);
	assert_int_equal(at, MADE + 55 * DAY);
	f.spread = 1;
	assert_int_equal(renew_needed(&f, &at), RENEW_NO);
	assert_int_equal(at, MADE + 60 * DAY);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_dates),
	    cmocka_unit_test(test_short),
	    cmocka_unit_test(test_spread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
