/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backoff.h"

static void
test_limits_double_up_to_the_cap(void **state)
{
	(void)state;
	assert_true(backoff_limit(0) == 0.5);
	assert_true(backoff_limit(1) == 1.0);
	assert_true(backoff_limit(2) == 2.0);
	assert_true(backoff_limit(6) == 32.0);
	assert_true(backoff_limit(7) == BACKOFF_CAP_S);
	assert_true(backoff_limit(4000000000u) == BACKOFF_CAP_S);
}

/* Full jitter: between zero and the limit, spread over all of it, another sequence for another seed. */
static void
test_jitter(void **state)
{
	struct backoff a, b;
	double least = 1e9, most = 0;
	int differ = 0;

	(void)state;
	backoff_init(&a, 1);
	backoff_init(&b, 2);
	for (unsigned i = 0; i < 1000; i++) {
		double limit = backoff_limit(i), x = backoff_next(&a), y = backoff_next(&b);
		assert_true(x >= 0 && x < limit);
		differ += x < y || x > y;
		if (limit >= BACKOFF_CAP_S) {
			least = x < least ? x : least;
			most = x > most ? x : most;
		}
	}
	assert_true(differ > 990);
	assert_true(least < 1.0 && most > 59.0);
	backoff_reset(&a);
	assert_true(backoff_next(&a) < 0.5);
}

static void
test_same_seed_same_delays(void **state)
{
	struct backoff a, b;

	(void)state;
	backoff_init(&a, 7);
	backoff_init(&b, 7);
	for (int i = 0; i < 20; i++)
		assert_true(backoff_next(&a) == backoff_next(&b));
}

static void
test_after(void **state)
{
	struct backoff b;
	double most = 0;

	(void)state;
	backoff_init(&b, 3);
	for (int i = 0; i < 500; i++) {
		double x = backoff_after(&b, 10), y = backoff_after(&b, 1000);
		assert_true(x >= 10 && x < 11);
		assert_true(y >= 1000 && y < 1005);
		most = x > most ? x : most;
	}
	assert_true(most > 10.8);
	assert_true(backoff_after(&b, 0) == 0);
	assert_true(backoff_after(&b, -1) == 0);
}

static bool
yes_after(void *context)
{
	int *left = context;

	return (*left)-- <= 0;
}

static void
test_sleep(void **state)
{
	int once = 1, never = 1000000;
	double began = backoff_now();

	(void)state;
	assert_false(backoff_sleep(30, yes_after, &once));
	assert_true(backoff_now() - began < 10);
	began = backoff_now();
	assert_true(backoff_sleep(0.05, yes_after, &never));
	assert_true(backoff_now() - began >= 0.05);
	assert_true(backoff_sleep(-1, NULL, NULL));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_limits_double_up_to_the_cap),
	    cmocka_unit_test(test_jitter),
	    cmocka_unit_test(test_same_seed_same_delays),
	    cmocka_unit_test(test_after),
	    cmocka_unit_test(test_sleep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
