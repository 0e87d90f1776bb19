/* stages: gcc clang address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "prng.h"
#include "rotate.h"

static double
norm(const float *x, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (double)x[i] * (double)x[i];
	return sqrt(sum);
}

/* Back and forth is nothing, and the norm is kept, for every size. */
static void
inverse(void **state)
{
	(void)state;
	static float x[ROTATE_MAX], y[ROTATE_MAX];
	struct prng r;

	prng_seed(&r, 1);
	for (size_t n = 1; n <= ROTATE_MAX; n *= 2) {
		for (size_t i = 0; i < n; i++)
			y[i] = x[i] = prng_float(&r) - 0.5f;
		rotate_forward(y, n, 3, n);
		assert_true(fabs(norm(y, n) - norm(x, n)) <= 1e-5 * norm(x, n));
		rotate_back(y, n, 3, n);
		for (size_t i = 0; i < n; i++)
			assert_true(fabsf(y[i] - x[i]) < 1e-5f);
	}
}

/* Rows of the Hadamard matrix by its definition: the sign of entry (i, k) is the parity of i & k. */
static void
definition(void **state)
{
	(void)state;
	enum { N = 64 };
	float x[N];

	for (size_t k = 0; k < N; k++) {
		memset(x, 0, sizeof(x));
		x[k] = 8;
		rotate_forward(x, N, 1, 1);
		for (size_t i = 0; i < N; i++) {
			float parity = __builtin_parity((unsigned)(i & k)) ? -1 : 1;
			assert_true(fabsf(x[i]) == 1);
			/* One random sign for the whole column. */
			assert_true(x[i] == parity * x[0]);
		}
	}
	/* Another seed or block gives other signs. */
	float y[N] = {0}, z[N] = {0};
	for (size_t k = 0; k < N; k++)
		x[k] = y[k] = z[k] = (float)k;
	rotate_forward(x, N, 1, 1);
	rotate_forward(y, N, 1, 2);
	rotate_forward(z, N, 2, 1);
	assert_true(memcmp(x, y, sizeof(x)) != 0 && memcmp(x, z, sizeof(x)) != 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(inverse),
	    cmocka_unit_test(definition),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
