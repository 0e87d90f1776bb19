/* stages: gcc clang address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "prng.h"
#include "vec.h"

/* Every position of a short and a long vector, so that no vector width or tail is missed. */
static void
finds_each_bad_value(void **state)
{
	const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
	float x[131];
	(void)state;

	for (size_t n = 1; n <= 131; n += n < 40 ? 1 : 13) {
		for (size_t i = 0; i < 131; i++)
			x[i] = i % 2 ? 3.4028235e38f : -1e-45f;
		assert_true(vec_all_finite(x, n));
		for (size_t i = 0; i < n; i++) {
			float keep = x[i];
			x[i] = bad[i % 4];
			assert_false(vec_all_finite(x, n));
			x[i] = keep;
		}
		if (n < 131) {
			x[n] = NAN;
			assert_true(vec_all_finite(x, n));
		}
	}
	assert_true(vec_all_finite(NULL, 0));
}

static void
sum_squares_by_hand(void **state)
{
	const float x[] = {1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11};
	const float big[] = {3e38f, 3e38f};
	(void)state;

	assert_true(vec_sum_squares(x, 0) == 0);
	assert_true(vec_sum_squares(x, 1) == 1);
	assert_true(vec_sum_squares(x, 8) == 204);
	assert_true(vec_sum_squares(x, 11) == 506);
	/* The square of the largest float is far from the largest double. */
	assert_true(isfinite(vec_sum_squares(big, 2)));
}

/* The definition in vec.h, spelled out: element i goes to partial sum i mod 8. */
static void
sum_squares_order_is_defined(void **state)
{
	float x[1003];
	struct prng r;
	(void)state;

	prng_seed(&r, 7);
	for (size_t i = 0; i < 1003; i++)
		x[i] = (prng_float(&r) - 0.5f) * 3.1f;
	for (size_t n = 1; n <= 1003; n++) {
		double part[8] = {0}, want = 0;
		for (size_t i = 0; i < n; i++)
			part[i % 8] += (double)x[i] * (double)x[i];
		for (size_t k = 0; k < 8; k++)
			want += part[k];
		double got = vec_sum_squares(x, n);
		assert_memory_equal(&got, &want, sizeof(got));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(finds_each_bad_value),
	    cmocka_unit_test(sum_squares_by_hand),
	    cmocka_unit_test(sum_squares_order_is_defined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
