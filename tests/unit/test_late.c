/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "job.h"
#include "late.h"

/* Rounds from the newest: what each starts from and comes to, a letter each. */
static void
check(const char *bases, const char *models, const char *live)
{
	struct late_point points[16];
	size_t n = strlen(bases);

	memset(points, 0, sizeof(points));
	for (size_t i = 0; i < n; i++) {
		points[i].round = n - i;
		memset(points[i].base, bases[i], 32);
		memset(points[i].model, models[i], 32);
	}
	late_trace(points, n);
	for (size_t i = 0; i < n; i++)
		if (points[i].live != (live[i] == '+'))
			fail_msg("%s to %s: %zu", bases, models, i);
}

static void
ways(void **state)
{
	(void)state;
	check("a", "-", "+");
	check("dcba", "-dcb", "++++");
	/* The second made no model. */
	check("cbba", "-cbb", "++++");
	/* b was good, c and d are given up: what started from b still leads on, what started from c does not. */
	check("bcba", "-dcb", "+-++");
	/* And on from there. */
	check("febcba", "-fedcb", "+++-++");
	late_trace(NULL, 0);
}

static void
weights(void **state)
{
	const struct staleness_spec root = {STALENESS_SQRT, STALENESS_BY_COUNT};
	const struct staleness_spec inverse = {STALENESS_INVERSE, STALENESS_BY_WEIGHTS};
	const struct staleness_spec constant = {STALENESS_CONSTANT, STALENESS_BY_COUNT};
	double weight = 60, scale = 7;

	(void)state;
	assert_true(late_weight(&root, 0) == 1 && late_weight(&root, 3) == 0.5);
	assert_true(late_weight(&root, 8) == 1.0 / 3);
	assert_true(late_weight(&inverse, 0) == 1 && late_weight(&inverse, 3) == 0.25);
	assert_true(late_weight(&constant, 1000) == 1);
	late_apply(&root, 3, &weight, &scale);
	assert_true(weight == 60 && scale == 0.5);
	late_apply(&inverse, 3, &weight, &scale);
	assert_true(weight == 15 && scale == 1);
}

static void
turns(void **state)
{
	(void)state;
	assert_int_equal(late_rest(0, 10), 0);
	/* Three times a fair share of twice, thrice and five times as many devices as fit a buffer. */
	assert_int_equal(late_rest(20, 10), 0);
	assert_int_equal(late_rest(59, 10), 0);
	assert_int_equal(late_rest(60, 10), 1);
	assert_int_equal(late_rest(150, 10), 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(ways),
	    cmocka_unit_test(weights),
	    cmocka_unit_test(turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
