/* stages: gcc clang address thread */
/* Products of scattered rows against plain loops, to the bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gemm_inside.h"
#include "prng.h"
#include "team.h"

#define ROWS 61 /* more than one block packs */
#define COLUMNS 130 /* likewise */
#define PRODUCTS 600
#define SPACE 4096
#define SKIPPED 72 /* at most, between runs of columns */
#define EDGE 3 /* floats behind a row of c, which must stay */

static float a[SPACE], b[SPACE + COLUMNS + SKIPPED + GEMM_PAST], c[ROWS * (COLUMNS + EDGE)],
    want[ROWS * (COLUMNS + EDGE)], held[ROWS * (COLUMNS + EDGE)];
static struct team *team;
static uint32_t b_at[PRODUCTS];
enum sum { STORE, CHAIN, ADD, BEFORE };

static void
fill(struct prng *r, float *to, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = 2 * prng_float(r) - 1;
}

static float
plus(bool fused, float sum, float x, float y)
{
	return fused ? fmaf(x, y, sum) : sum + x * y;
}

static bool
fuses(enum gemm_arithmetic how)
{
	return how == GEMM_FAST && gemm_kernels_of(GEMM_FUSED) != gemm_kernels_of(GEMM_ROUNDED);
}

static void
expect(const struct gemm *g, bool fused)
{
	for (size_t i = 0; i < g->m; i++)
		for (size_t j = 0; j < g->n; j++) {
			float *to = want + i * g->c_row + j, sum = g->chain ? *to : 0;
			size_t column = g->b_run ? j + j / g->b_run * g->b_skip : j;
			for (size_t p = 0; p < g->k; p++)
				sum = plus(fused, sum, a[i * g->a_row + p], b[b_at[p] + column]);
			*to = g->before ? g->before[i] + sum : g->beta != 0 ? *to + sum : sum;
		}
}

static float before[ROWS];

static void
compare(enum gemm_arithmetic how, struct prng *r, size_t m, size_t n, size_t k, enum sum sum)
{
	const struct gemm g = {.m = m,
	    .n = n,
	    .k = k,
	    .a = a,
	    .a_row = 1 + prng_below(r, (SPACE - k) / ROWS),
	    .a_col = 1,
	    .b = b,
	    .b_at = b_at,
	    .b_run = 16 * prng_below(r, 4),
	    .b_skip = prng_below(r, 10),
	    .c = c,
	    .c_row = n + EDGE,
	    .alpha = 1,
	    .beta = sum == ADD ? 1 : 0,
	    .before = sum == BEFORE ? before : NULL,
	    .chain = sum == CHAIN,
	    .arithmetic = how};

	fill(r, c, m * g.c_row);
	fill(r, before, m);
	memcpy(want, c, sizeof(c));
	for (size_t p = 0; p < k; p++)
		b_at[p] = (uint32_t)prng_below(r, SPACE);
	expect(&g, fuses(how));
	memcpy(held, c, sizeof(c));
	gemm_outer(&g);
	assert_memory_equal(c, want, m * g.c_row * sizeof(float));
	/* In stripes. */
	struct gemm shared = g;
	shared.team = team;
	memcpy(c, held, sizeof(c));
	gemm_outer(&shared);
	assert_memory_equal(c, want, m * g.c_row * sizeof(float));
}

static void
sums(void **state)
{
	static const size_t products[] = {0, 1, 17, 256, 257, PRODUCTS};
	struct prng r;

	(void)state;
	assert_int_equal(team_new(&team, 3), ERR_OK);
	prng_seed(&r, 1);
	fill(&r, a, SPACE);
	fill(&r, b, sizeof(b) / sizeof(*b));
	for (size_t n = 1; n <= COLUMNS; n += n < 36 ? 1 : 7)
		for (size_t k = 0; k < sizeof(products) / sizeof(products[0]); k++)
			for (int sum = STORE; sum <= BEFORE; sum++) {
				compare(GEMM_EXACT, &r, 1 + (n + k) % ROWS, n, products[k],
				    (enum sum)sum);
				compare(GEMM_FAST, &r, 1 + (n + k) % ROWS, n, products[k],
				    (enum sum)sum);
			}
	team_free(team);
}

/* Sixteen lanes of each sum, chained from what is there. */
static void
dots(void **state)
{
	static float lanes[ROWS * 16], expected[ROWS * 16];
	struct prng r;

	(void)state;
	prng_seed(&r, 2);
	fill(&r, a, SPACE);
	fill(&r, b, sizeof(b) / sizeof(*b));
	for (size_t q = 0; q < 2 * (COLUMNS + 1); q++) {
		size_t n = q / 2, k = n % (ROWS + 1);
		enum gemm_arithmetic how = q % 2 ? GEMM_FAST : GEMM_EXACT;
		fill(&r, lanes, ROWS * 16);
		memcpy(expected, lanes, sizeof(lanes));
		for (size_t p = 0; p < k; p++)
			b_at[p] = (uint32_t)prng_below(&r, SPACE);
		for (size_t p = 0; p < k; p++)
			for (size_t i = 0; i < n; i++)
				expected[p * 16 + i % 16] = plus(
				    fuses(how), expected[p * 16 + i % 16], a[i], b[b_at[p] + i]);
		gemm_dots(how, lanes, a, b, b_at, k, n);
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
