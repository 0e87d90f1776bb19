/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "budget.h"
#include "ram.h"

#define ALL ((uint64_t)1600)
#define LARGE ((uint64_t)1300)

static void
large_ones_share_what_is_not_kept(void **state)
{
	struct budget *b = NULL;

	(void)state;
	assert_int_equal(budget_new(&b), ERR_OK);
	assert_int_equal(budget_large(ALL), LARGE);
	assert_int_equal(budget_small(ALL), 50);
	assert_true(budget_take(b, ALL, 1000, false));
	assert_false(budget_take(b, ALL, 301, false));
	assert_true(budget_take(b, ALL, 300, false));
	assert_false(budget_take(b, ALL, 1, false));
	/* Who is small has what is kept for it, and takes nothing of the others'. */
	assert_true(budget_take(b, ALL, 50, true));
	assert_int_equal(budget_taken(b), 1350);
	budget_give(b, 1000, false);
	assert_true(budget_take(b, ALL, 1000, false));
	budget_give(b, 1000, false);
	budget_give(b, 300, false);
	budget_give(b, 50, true);
	assert_int_equal(budget_taken(b), 0);
	budget_free(b);
}

/* A job of before there was a limit. */
static void
what_needs_more_than_all_has_it_alone(void **state)
{
	struct budget *b = NULL;

	(void)state;
	assert_int_equal(budget_new(&b), ERR_OK);
	assert_true(budget_take(b, ALL, 1, false));
	assert_false(budget_take(b, ALL, 5000, false));
	budget_give(b, 1, false);
	assert_true(budget_take(b, ALL, 40, true));
	assert_true(budget_take(b, ALL, 5000, false));
	assert_false(budget_take(b, ALL, 1, false));
	assert_false(budget_take(b, ALL, UINT64_MAX, false));
	budget_give(b, 5000, false);
	budget_give(b, 40, true);
	budget_free(b);
}

static void
half_of_what_there_is(void **state)
{
	struct budget *b = NULL;

	(void)state;
	assert_int_equal(budget_new(&b), ERR_OK);
	assert_int_equal(budget_all(b, 12345), 12345);
	if (ram_limit() >= (uint64_t)128 << 20)
		assert_int_equal(budget_all(b, 0), ram_limit() / 2);
	budget_free(b);
	assert_true(budget_all(NULL, 0) == UINT64_MAX);
	assert_true(budget_take(NULL, UINT64_MAX, 1, false));
	budget_give(NULL, 1, false);
	budget_free(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(large_ones_share_what_is_not_kept),
	    cmocka_unit_test(what_needs_more_than_all_has_it_alone),
	    cmocka_unit_test(half_of_what_there_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
