/* stages: gcc clang address */
/* Ways of fast products: each right on odd shapes and by any team, taken where it is chosen, and nowhere else; how measured times choose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gemm_choice.h"
#include "gemm_inside.h"
#include "prng.h"
#include "team.h"

#define M_MOST 130
#define N_MOST 150
#define K_MOST 1100

static float a[M_MOST * K_MOST], b[N_MOST * K_MOST], packed[(N_MOST + 16) * K_MOST];
static float out[4][M_MOST * N_MOST];

static void
fill(struct prng *r)
{
	for (size_t i = 0; i < sizeof(a) / sizeof(*a); i++)
		a[i] = prng_float(r) - 0.5f;
	for (size_t i = 0; i < sizeof(b) / sizeof(*b); i++)
		b[i] = prng_float(r) - 0.5f;
}

static struct gemm_choice
all_by(const char *words)
{
	struct gemm_choice choice = gemm_choice_usual();
	struct why why = {""};

	if (gemm_choice_read(&choice, words, &why))
		fail_msg("%s", why.text);
	return choice;
}

static void
use(const char *words)
{
	struct gemm_choice choice = all_by(words);

	gemm_choice_set(&choice);
}

enum layout { ROWS, COLUMNS, DOTS, PANELS, LAYOUTS };

static void
multiply(struct gemm g, enum layout layout, float *to)
{
	g.c = to;
	if (layout == PANELS)
		gemm_pack(&g, packed, false);
	(layout == DOTS ? gemm_dot : gemm_outer)(&g);
}

static struct gemm
product_of(enum layout layout, size_t m, size_t n, size_t k)
{
	return (struct gemm){.m = m,
	    .n = n,
	    .k = k,
	    .a = a,
	    .a_row = layout == COLUMNS ? 1 : k,
	    .a_col = layout == COLUMNS ? m : 1,
	    .b = b,
	    .b_row = layout == DOTS ? k : n,
	    .c_row = n,
	    .alpha = 1,
	    .arithmetic = GEMM_FAST};
}

/* To a millionth of what is added up. */
static void
check(const struct gemm *g, enum layout layout, const float *got)
{
	for (size_t i = 0; i < g->m; i += 1 + g->m / 9)
		for (size_t j = 0; j < g->n; j += 1 + g->n / 7) {
			double want = 0, size = 1;
			for (size_t p = 0; p < g->k; p++) {
				double term = (double)g->a[i * g->a_row + p * g->a_col] *
				    (double)b[layout == DOTS ? j * g->k + p : p * g->n + j];
				want += term;
				size += fabs(term);
			}
			assert_true(fabs((double)got[i * g->n + j] - want) <= 1e-6 * size);
		}
}

static const char *const ways[] = {
    "rounded", "fused", "openblas", "rounded openblas", "fused openblas"};
#define WAYS (sizeof(ways) / sizeof(*ways))

/* Sides on both sides of every bound: of tiles, of OpenBLAS's 24 and 96, of its sums of 512 and 1,024. */
static void
every_way(void **state)
{
	static const size_t m[] = {1, 7, 23, 24, 61, 95, 97, 130}, n[] = {1, 15, 17, 31, 149};
	static const size_t k[] = {1, 16, 25, 511, 513, 1023, 1025};
	struct prng r;
	struct team *team;

	(void)state;
	prng_seed(&r, 3);
	fill(&r);
	assert_int_equal(team_new(&team, 3), ERR_OK);
	for (size_t w = 0; w < WAYS; w++) {
		use(ways[w]);
		for (size_t q = 0; q < 120; q++) {
			enum layout layout = (enum layout)(q % LAYOUTS);
			struct gemm g = product_of(layout, m[prng_below(&r, 8)],
			    n[prng_below(&r, 5)], k[prng_below(&r, 7)]);
			multiply(g, layout, out[0]);
			check(&g, layout, out[0]);
			g.team = team;
			multiply(g, layout, out[1]);
			assert_memory_equal(out[0], out[1], g.m * g.n * sizeof(float));
		}
	}
	use("usual");
	team_free(team);
}

static bool
same(const struct gemm *g, const float *x, const float *y)
{
	return memcmp(x, y, g->m * g->n * sizeof(float)) == 0;
}

/* Of each layout small, few, many and long: the bits tell which way it went. */
static void
is_taken(void **state)
{
	static const size_t sides[][3] = {
	    {8, 40, 300}, {64, 100, 200}, {64, 100, 1040}, {120, 100, 200}, {120, 100, 1040}};
	bool fuses = gemm_kernels_of(GEMM_FUSED) != gemm_kernels_of(GEMM_ROUNDED);
	struct prng r;

	(void)state;
	prng_seed(&r, 4);
	fill(&r);
	for (size_t q = 0; q < 5 * LAYOUTS; q++) {
		enum layout layout = (enum layout)(q % LAYOUTS);
		const size_t *s = sides[q / LAYOUTS];
		struct gemm g = product_of(layout, s[0], s[1], s[2]);
		use("rounded");
		multiply(g, layout, out[0]);
		use("fused");
		multiply(g, layout, out[1]);
		use("openblas");
		multiply(g, layout, out[2]);
		g.arithmetic = GEMM_EXACT;
		multiply(g, layout, out[3]);
		assert_true(same(&g, out[0], out[3]));
		assert_true(!fuses || !same(&g, out[0], out[1]));
		g.arithmetic = GEMM_MIXED;
		multiply(g, layout, out[3]);
		assert_true(q < LAYOUTS ? same(&g, out[0], out[3]) : same(&g, out[2], out[3]));
	}
	use("usual");
}

/* What is not fast does not ask. */
static void
others_stay(void **state)
{
	struct prng r;

	(void)state;
	prng_seed(&r, 5);
	fill(&r);
	for (size_t q = 0; q < 2 * LAYOUTS; q++) {
		enum layout layout = (enum layout)(q % LAYOUTS);
		struct gemm g = product_of(layout, 100, 90, 600);
		g.arithmetic = q < LAYOUTS ? GEMM_EXACT : GEMM_MIXED;
		for (size_t w = 0; w < 3; w++) {
			use(ways[w]);
			multiply(g, layout, out[w]);
		}
		assert_true(same(&g, out[0], out[1]) && same(&g, out[0], out[2]));
		use("usual");
		assert_true(!gemm_slabs(GEMM_EXACT, 64, 784, 288));
		assert_true(gemm_slabs(GEMM_MIXED, 64, 784, 288));
	}
}

/* A convolution's rows are laid out where OpenBLAS is to have them, if they are worth it. */
static void
slabs(void **state)
{
	(void)state;
	use("slabs=openblas");
	assert_true(gemm_slabs(GEMM_FAST, 64, 784, 288));
	assert_false(gemm_slabs(GEMM_FAST, 16, 784, 288));
	use("slabs=fused");
	assert_false(gemm_slabs(GEMM_FAST, 64, 784, 288));
	use("usual");
}

static void
spots_and_lanes(void **state)
{
	static float rows[4096], to[3][160], lanes[3][16];
	static const uint32_t at[] = {0, 5, 48, 300, 301, 17};
	struct prng r;

	(void)state;
	prng_seed(&r, 6);
	fill(&r);
	for (size_t i = 0; i < 4096; i++)
		rows[i] = prng_float(&r);
	for (size_t width = 16; width <= 160; width += 144)
		for (size_t w = 0; w < 2; w++) {
			struct gemm_spots s = {6, at, a};
			memset(to, 0, sizeof(to));
			memset(lanes, 0, sizeof(lanes));
			use(ways[w]);
			gemm_gather(GEMM_FAST, to[0], rows, &s, width);
			gemm_dots(GEMM_FAST, lanes[0], a, rows, at, 1, 100);
			gemm_kernels_of((enum gemm_way)w)->gather(to[1], rows, &s, width);
			gemm_kernels_of((enum gemm_way)w)->gather(to[2], rows, &s, width);
			assert_memory_equal(to[0], to[1], width * sizeof(float));
			for (size_t j = 0; j < width; j++) {
				double want = 0;
				for (size_t i = 0; i < 6; i++)
					want += (double)a[i] * (double)rows[at[i] + j];
				assert_true(fabs((double)to[0][j] - want) < 1e-5);
			}
			double sum = 0, want = 0;
			for (size_t i = 0; i < 100; i++)
				want += (double)a[i] * (double)rows[i];
			for (size_t i = 0; i < 16; i++)
				sum += (double)lanes[0][i];
			assert_true(fabs(sum - want) < 1e-4);
		}
	use("usual");
}

static void
words(void **state)
{
	static const char *const bad[] = {"quick", "rows", "rows=", "rows=quick", "rows=openblas",
	    "=fused", "row=fused", "rows=fused,dots=fused", "fused rows=fused x"};
	struct gemm_choice choice = gemm_choice_usual(), before = choice;
	struct why why;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(gemm_choice_read(&choice, bad[i], &why), ERR_INVALID);
		assert_memory_equal(&choice, &before, sizeof(choice));
	}
	assert_int_equal(gemm_choice_read(&choice, " rounded  dots-long=openblas ", NULL), ERR_OK);
	for (size_t i = 0; i < GEMM_CLASSES; i++)
		assert_int_equal(choice.way[i], i == GEMM_DOTS_LONG ? GEMM_OPENBLAS : GEMM_ROUNDED);
	assert_int_equal(gemm_choice_read(&choice, "openblas", NULL), ERR_OK);
	assert_int_equal(choice.way[GEMM_PANELS], GEMM_ROUNDED);
	assert_int_equal(choice.way[GEMM_ROWS_LOW], GEMM_OPENBLAS);
	assert_int_equal(gemm_choice_read(&choice, "", NULL), ERR_OK);
}

/* On some CPUs fusing or OpenBLAS is slower. The usual way stays unless another is clearly quicker, and where nothing was measured. */
static void
times(void **state)
{
	struct gemm_times t = {{{0}}};
	struct gemm_choice c, usual = gemm_choice_usual();

	(void)state;
	c = gemm_choice_of(&t);
	assert_memory_equal(&c, &usual, sizeof(c));
	t.ms[GEMM_PANELS][GEMM_ROUNDED] = 1.0;
	t.ms[GEMM_PANELS][GEMM_FUSED] = 1.5;
	t.ms[GEMM_ROWS][GEMM_ROUNDED] = 0.98;
	t.ms[GEMM_ROWS][GEMM_FUSED] = 1.0;
	t.ms[GEMM_COLUMNS_LONG][GEMM_ROUNDED] = 0.9;
	t.ms[GEMM_COLUMNS_LONG][GEMM_FUSED] = 0.8;
	t.ms[GEMM_COLUMNS_LONG][GEMM_OPENBLAS] = 1.6;
	t.ms[GEMM_DOTS_LARGE][GEMM_ROUNDED] = 0.9;
	t.ms[GEMM_DOTS_LARGE][GEMM_FUSED] = 1.0;
	t.ms[GEMM_DOTS_LARGE][GEMM_OPENBLAS] = 0.5;
	t.ms[GEMM_SLABS][GEMM_FUSED] = 1.0;
	t.ms[GEMM_SLABS][GEMM_OPENBLAS] = 1.01;
	c = gemm_choice_of(&t);
	assert_int_equal(c.way[GEMM_SLABS], GEMM_OPENBLAS);
	t.ms[GEMM_SLABS][GEMM_OPENBLAS] = 1.04;
	c = gemm_choice_of(&t);
	assert_int_equal(c.way[GEMM_SLABS], GEMM_FUSED);
	assert_int_equal(c.way[GEMM_PANELS], GEMM_ROUNDED);
	assert_int_equal(c.way[GEMM_ROWS], GEMM_FUSED);
	assert_int_equal(c.way[GEMM_COLUMNS_LONG], GEMM_FUSED);
	assert_int_equal(c.way[GEMM_DOTS_LARGE], GEMM_OPENBLAS);
	assert_int_equal(c.way[GEMM_DOTS_LONG], GEMM_OPENBLAS);
}

/* What it finds is this machine's; that it is a time of every way, and the choice of these times, is not. */
static void
measured(void **state)
{
	struct gemm_times t;
	struct gemm_choice c, again;
	char blas[256];

	(void)state;
	assert_int_equal(gemm_choice_measure(&c, &t), ERR_OK);
	again = gemm_choice_of(&t);
	assert_memory_equal(&c, &again, sizeof(c));
	for (size_t i = 0; i < GEMM_CLASSES; i++)
		for (size_t way = 0; way < GEMM_WAYS; way++) {
			bool can = gemm_choice_can((enum gemm_class)i, (enum gemm_way)way);
			assert_true(can == (t.ms[i][way] > 0));
			assert_true(can || c.way[i] != way);
		}
	gemm_choice_blas(blas, sizeof(blas));
	assert_non_null(strstr(blas, "BLAS"));
	assert_non_null(strstr("512 fused 256 fused 128 fused", gemm_choice_vectors()));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_way),
	    cmocka_unit_test(is_taken),
	    cmocka_unit_test(others_stay),
	    cmocka_unit_test(slabs),
	    cmocka_unit_test(spots_and_lanes),
	    cmocka_unit_test(words),
	    cmocka_unit_test(times),
	    cmocka_unit_test(measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
