/* Products of scattered rows against plain loops, to the bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "prng.h"
#include "taps.h"

#define ROWS 14
#define COLUMNS 70
#define PRODUCTS 600
#define SPACE 4096
#define EDGE 3 /* floats behind a row of c, which must stay */

static float a[SPACE], b[SPACE + COLUMNS + TAPS_PAST], c[ROWS * (COLUMNS + EDGE)],
    want[ROWS * (COLUMNS + EDGE)];
static uint32_t a_row[ROWS], a_at[PRODUCTS], b_at[PRODUCTS];

static void
fill(struct prng *r, float *to, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = 2 * prng_float(r) - 1;
}

static void
expect(const struct taps *t)
{
	for (size_t i = 0; i < t->m; i++)
		for (size_t j = 0; j < t->n; j++) {
			float *to = want + i * t->c_row + j, sum = t->sum == TAPS_CHAIN ? *to : 0;
			for (size_t p = 0; p < t->k; p++)
				sum += a[a_row[i] + a_at[p]] * b[b_at[p] + j];
			*to = t->sum == TAPS_ADD ? *to + sum : sum;
		}
}

static void
compare(struct prng *r, size_t m, size_t n, size_t k, enum taps_sum sum)
{
	const struct taps t = {m, n, k, a, a_row, a_at, b, b_at, c, n + EDGE, sum};

	fill(r, c, m * t.c_row);
	memcpy(want, c, sizeof(c));
	for (size_t i = 0; i < m; i++)
		a_row[i] = (uint32_t)prng_below(r, SPACE / 2);
	for (size_t p = 0; p < k; p++) {
		a_at[p] = (uint32_t)prng_below(r, SPACE / 2);
		b_at[p] = (uint32_t)prng_below(r, SPACE);
	}
	expect(&t);
	taps_sum(&t);
	assert_memory_equal(c, want, m * t.c_row * sizeof(float));
}

static void
sums(void **state)
{
	static const size_t products[] = {0, 1, 17, 256, 257, PRODUCTS};
	struct prng r;

	(void)state;
	prng_seed(&r, 1);
	fill(&r, a, SPACE);
	fill(&r, b, SPACE + COLUMNS + TAPS_PAST);
	for (size_t n = 1; n <= COLUMNS; n++)
		for (size_t k = 0; k < sizeof(products) / sizeof(products[0]); k++)
			for (int sum = TAPS_STORE; sum <= TAPS_ADD; sum++)
				compare(&r, 1 + (n + k) % ROWS, n, products[k], (enum taps_sum)sum);
}

/* Sixteen lanes of each sum, chained from what is there. */
static void
dots(void **state)
{
	float lanes[ROWS * 16], expected[ROWS * 16];
	struct prng r;

	(void)state;
	prng_seed(&r, 2);
	fill(&r, a, SPACE);
	fill(&r, b, SPACE + COLUMNS + TAPS_PAST);
	for (size_t n = 0; n <= COLUMNS; n++) {
		size_t k = n % (ROWS + 1);
		fill(&r, lanes, ROWS * 16);
		memcpy(expected, lanes, sizeof(lanes));
		for (size_t p = 0; p < k; p++)
			b_at[p] = (uint32_t)prng_below(&r, SPACE);
		for (size_t p = 0; p < k; p++)
			for (size_t i = 0; i < n; i++)
				expected[p * 16 + i % 16] += a[i] * b[b_at[p] + i];
		taps_dots(lanes, a, b, b_at, k, n);
		assert_memory_equal(lanes, expected, sizeof(lanes));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(sums),
	    cmocka_unit_test(dots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
