/* stages: gcc clang openssl address */
/* How long something was wrong below: by the clock that nobody sets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "clock_fixture.h"
#include "health.h"
#include "report.h"

static void
duration(void **state)
{
	struct health_report report;
	enum wait_reason was;
	struct health *h;

	(void)state;
	assert_int_equal(health_new(&h), ERR_OK);
	const double begun = wall;
	health_set(h, WAIT_DISK_FULL, 10, "write it");
	pass(30);
	/* Another reason while it lasts is no other beginning. */
	health_set(h, WAIT_DISK_ERROR, 0, "write it");
	wall -= 86400;
	health_report(h, &report);
	assert_int_equal(report.reason, WAIT_DISK_ERROR);
	assert_true(report.since_seconds == begun && report.failures_total == 1);
	assert_int_equal(health_need(h), 10);
	assert_true(health_clear(h, &was) == 30);
	assert_int_equal(was, WAIT_DISK_ERROR);
	assert_int_equal(health_reason(h), WAIT_NONE);
	health_free(h);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(duration)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
