/* stages: gcc clang address */
/* The kernels of every instruction set of this machine: right, all that round products of the same bits, and all that fuse, and never outside
 * their arrays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gemm_inside.h"
#include "prng.h"
#include "team.h"

/* n floats whose end lies flush against an unreadable page. */
struct guarded {
	void *map;
	size_t bytes;
	float *x;
};

static struct guarded
guarded_new(size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct guarded g = {.bytes = (n * sizeof(float) + page - 1) / page * page + page};

	g.map = mmap(NULL, g.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(g.map != MAP_FAILED);
	assert_int_equal(mprotect((char *)g.map + g.bytes - page, page, PROT_NONE), 0);
	g.x = (float *)(void *)((char *)g.map + g.bytes - page) - n;
	return g;
}

static struct guarded
guarded_random(struct prng *r, size_t n)
{
	struct guarded g = guarded_new(n);

	for (size_t i = 0; i < n; i++)
		g.x[i] = prng_float(r) - 0.5f;
	return g;
}

static void
guarded_free(struct guarded *g)
{
	munmap(g->map, g->bytes);
}

struct set {
	const char *name;
	const struct gemm_kernels *kernels;
	bool fused;
};
#define SETS 6

static size_t
sets(struct set out[SETS])
{
	size_t n = 0;

	out[n++] = (struct set){"plain", &gemm_plain_kernels, false};
#if GEMM_X86
	if (__builtin_cpu_supports("avx2"))
		out[n++] = (struct set){"avx2", &gemm_avx2_kernels, false};
	if (__builtin_cpu_supports("avx512f"))
		out[n++] = (struct set){"avx512", &gemm_avx512_kernels, false};
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		out[n++] = (struct set){"avx2 fused", &gemm_avx2_fused_kernels, true};
	if (__builtin_cpu_supports("avx512f"))
		out[n++] = (struct set){"avx512 fused", &gemm_avx512_fused_kernels, true};
#endif
#if GEMM_NEON
	out[n++] = (struct set){"neon fused", &gemm_neon_fused_kernels, true};
#endif
	return n;
}

static float
plus(bool fused, float sum, float x, float y)
{
	return fused ? fmaf(x, y, sum) : sum + x * y;
}

static double
reference(const struct gemm *g, bool dot, float before, size_t i, size_t j)
{
	double sum = 0;

	for (size_t p = 0; p < g->k; p++) {
		float b = dot ? g->b[j * g->b_row + p] : g->b[p * g->b_row + j];
		sum += (double)g->a[i * g->a_row + p * g->a_col] * (double)b;
	}
	return (double)g->alpha * sum + (g->beta != 0 ? (double)g->beta * (double)before : 0);
}

/* The order of gemm.h, one product after the other. */
static float
ascending(const struct gemm *g, bool fused, size_t i, size_t j)
{
	float sum = 0;

	for (size_t p = 0; p < g->k; p++)
		sum = plus(fused, sum, g->a[i * g->a_row + p * g->a_col], g->b[p * g->b_row + j]);
	return g->alpha * sum;
}

static float
lanes(const struct gemm *g, bool fused, size_t i, size_t j, size_t first, size_t k)
{
	float t[16] = {0};

	for (size_t p = 0; p < k; p++)
		t[p % 16] = plus(fused, t[p % 16], g->a[i * g->a_row + first + p],
		    g->b[j * g->b_row + first + p]);
	for (size_t half = 8; half > 0; half /= 2)
		for (size_t l = 0; l < half; l++)
			t[l] += t[l + half];
	return g->alpha * t[0];
}

static float
ordered(const struct gemm *g, bool fused, bool dot, float before, size_t i, size_t j)
{
	size_t blocks = (g->k + GEMM_DOT_BLOCK - 1) / GEMM_DOT_BLOCK;
	size_t length = blocks > 1 ? ((g->k + blocks - 1) / blocks + 15) / 16 * 16 : g->k;
	size_t first = dot && length < g->k ? length : g->k;
	float sum = dot ? lanes(g, fused, i, j, 0, first) : ascending(g, fused, i, j);

	sum = g->beta != 0 ? g->beta * before + sum : sum;
	for (size_t p = first; p < g->k; p += length)
		sum += lanes(g, fused, i, j, p, g->k - p < length ? g->k - p : length);
	return sum;
}

static void
check(struct gemm *g, bool fused, bool dot, const float *before, const float *after)
{
	double tolerance = 1e-6 * (4 + sqrt((double)g->k));

	for (size_t i = 0; i < g->m; i++)
		for (size_t j = 0; j < g->n; j++) {
			size_t at = i * g->c_row + j;
			double want = reference(g, dot, before[at], i, j);
			if (!(fabs((double)after[at] - want) <= tolerance) ||
			    after[at] != ordered(g, fused, dot, before[at], i, j))
				fail_msg("%s m %zu n %zu k %zu at %zu,%zu: %.9g for %.9g",
				    dot ? "dot" : "outer", g->m, g->n, g->k, i, j,
				    (double)after[at], want);
		}
}

/* The product packed, from b as it lies and from b turned, gives the same. */
static void
packed(const struct gemm *g, const struct set *set, const float *before, bool turned)
{
	struct gemm own = *g;
	struct guarded b = guarded_new(g->n * g->k), c = guarded_new(g->m * g->n);
	struct guarded to = guarded_new(gemm_pack_floats(g->k, g->n));
	size_t bytes = g->m * g->n * sizeof(float);

	for (size_t p = 0; p < g->k; p++)
		for (size_t j = 0; j < g->n; j++)
			b.x[turned ? j * g->k + p : p * g->n + j] = g->b[p * g->b_row + j];
	own.b = b.x;
	own.b_row = turned ? g->k : g->n;
	own.c = c.x;
	own.arithmetic = GEMM_EXACT;
	memcpy(c.x, before, bytes);
	gemm_pack(&own, to.x, turned);
	set->kernels->outer(&own);
	if (memcmp(c.x, g->c, bytes) != 0)
		fail_msg("%s packed differs: m %zu n %zu k %zu turned %d", set->name, g->m, g->n,
		    g->k, turned);
	guarded_free(&b);
	guarded_free(&c);
	guarded_free(&to);
}

/* Elements of `rows` rows of `width` that begin `row` apart. */
static size_t
span(size_t rows, size_t row, size_t width)
{
	return (rows - 1) * row + width;
}

/* One product by every set, rows `gap` apart; beta 0 must not read c, so c holds NaN then. */
static void
product(struct prng *r, struct gemm g, bool dot, bool transposed, size_t gap)
{
	size_t a_wide = transposed ? g.m : g.k, a_high = transposed ? g.k : g.m;
	size_t b_wide = dot ? g.k : g.n, b_high = dot ? g.n : g.k;
	size_t cells = span(g.m, g.n + gap, g.n), bytes = cells * sizeof(float);
	struct guarded a = guarded_random(r, span(a_high, a_wide + gap, a_wide));
	struct guarded b = guarded_random(r, span(b_high, b_wide + gap, b_wide));
	struct guarded c = guarded_new(cells), first = guarded_new(cells);
	struct guarded before = guarded_random(r, cells);
	struct set set[SETS];

	g.a = a.x;
	g.a_row = transposed ? 1 : g.k + gap;
	g.a_col = transposed ? g.m + gap : 1;
	g.b = b.x;
	g.b_row = b_wide + gap;
	g.c_row = g.n + gap;
	for (size_t i = 0, n = sets(set); i < n; i++) {
		g.c = c.x;
		memcpy(c.x, before.x, bytes);
		for (size_t k = 0; g.beta == 0 && k < cells; k++)
			c.x[k] = NAN;
		(dot ? set[i].kernels->dot : set[i].kernels->outer)(&g);
		check(&g, set[i].fused, dot, before.x, c.x);
		if (i == 0 || set[i].fused != set[i - 1].fused)
			memcpy(first.x, c.x, bytes);
		else if (memcmp(first.x, c.x, bytes) != 0)
			fail_msg("%s differs from others: m %zu n %zu k %zu", set[i].name, g.m, g.n,
			    g.k);
		for (int turned = 0; !dot && gap == 0 && turned < 2; turned++)
			packed(&g, &set[i], before.x, turned);
	}
	guarded_free(&a);
	guarded_free(&b);
	guarded_free(&c);
	guarded_free(&first);
	guarded_free(&before);
}

static void
random_shapes(void **state)
{
	uint64_t seed = getenv("SEED") ? strtoull(getenv("SEED"), NULL, 0) : 1;
	struct prng r;

	(void)state;
	printf("SEED=%llu\n", (unsigned long long)seed);
	prng_seed(&r, seed);
	for (int i = 0; i < 300; i++) {
		struct gemm g = {.m = 1 + prng_below(&r, 20),
		    .n = 1 + prng_below(&r, 150),
		    .k = 1 + prng_below(&r, i % 10 == 0 ? 2500 : 70)};
		g.alpha = 1 - 2 * prng_float(&r);
		g.beta = i % 3 == 0 ? 0 : i % 3 == 1 ? 1 : prng_float(&r);
		product(&r, g, i % 2 == 0, i % 4 == 1, i % 5 < 3 ? 0 : (size_t)i % 5);
	}
}

static void
every_tile(void **state)
{
	struct prng r;

	(void)state;
	prng_seed(&r, 2);
	for (size_t m = 1; m <= 7; m++)
		for (size_t n = 1; n <= 81; n += n < 20 ? 1 : 5)
			for (int dot = 0; dot < 2; dot++)
				product(&r,
				    (struct gemm){
					.m = m, .n = n, .k = 21, .alpha = 1, .beta = 0.5f},
				    dot, false, 0);
}

/* Matrices large enough for the other walking order. */
static void
large(void **state)
{
	struct prng r;

	(void)state;
	prng_seed(&r, 3);
	product(
	    &r, (struct gemm){.m = 7, .n = 1000, .k = 150, .alpha = 1, .beta = 1}, false, false, 0);
	product(
	    &r, (struct gemm){.m = 13, .n = 9, .k = 5000, .alpha = 1, .beta = 0}, true, false, 0);
}

/* A row of `width` for each spot, overlapping as a convolution's do; the last ends flush against the guard. */
static void
spots_of(struct prng *r, size_t width, bool scatter)
{
	uint32_t at[37];
	struct guarded rows = guarded_random(r, 36 * 3 + width),
		       before = guarded_new(36 * 3 + width);
	struct guarded row = guarded_random(r, width), value = guarded_random(r, 37);
	struct gemm_spots s = {37, at, value.x};
	struct guarded first = guarded_new(36 * 3 + width);
	size_t n = scatter ? 36 * 3 + width : width;
	struct guarded *to = scatter ? &rows : &row;
	struct set set[SETS];

	for (uint32_t i = 0; i < 37; i++)
		at[i] = 3 * i;
	memcpy(before.x, to->x, n * sizeof(float));
	for (size_t k = 0, count = sets(set); k < count; k++) {
		memcpy(to->x, before.x, n * sizeof(float));
		if (scatter)
			set[k].kernels->scatter(rows.x, row.x, &s, width);
		else
			set[k].kernels->gather(row.x, rows.x, &s, width);
		for (size_t j = 0; j < n; j++) {
			float want = before.x[j];
			for (size_t i = 0; i < 37; i++)
				if (!scatter)
					want =
					    plus(set[k].fused, want, value.x[i], rows.x[at[i] + j]);
				else if (j >= at[i] && j - at[i] < width)
					want =
					    plus(set[k].fused, want, value.x[i], row.x[j - at[i]]);
			assert_true(to->x[j] == want);
		}
		if (k == 0 || set[k].fused != set[k - 1].fused)
			memcpy(first.x, to->x, n * sizeof(float));
		assert_memory_equal(first.x, to->x, n * sizeof(float));
	}
	guarded_free(&rows);
	guarded_free(&before);
	guarded_free(&row);
	guarded_free(&value);
	guarded_free(&first);
}

/* Large enough to be packed in blocks: every edge of a block, whatever its size. */
static void
blocks(void **state)
{
	struct prng r;

	(void)state;
	prng_seed(&r, 6);
	for (int i = 0; i < 48; i++) {
		struct gemm g = {.m = 24 + prng_below(&r, i % 4 == 0 ? 500 : 90),
		    .n = 16 + prng_below(&r, i % 4 == 1 ? 300 : 60),
		    .k = 16 + prng_below(&r, i % 4 == 2 ? 1500 : 140)};
		g.alpha = 1 - 2 * prng_float(&r);
		g.beta = i % 3 == 0 ? 0 : i % 3 == 1 ? 1 : prng_float(&r);
		product(&r, g, i >= 32, i % 2 == 1 && i < 32, prng_below(&r, 4));
	}
}

/* By the door: in one piece and by a team, packed and not; large ones by OpenBLAS where that is allowed. */
static void
doors(void **state)
{
	struct prng r;
	struct team *team;
	const size_t sides[][3] = {{10, 130, 70}, {64, 200, 70}, {300, 50, 90}, {1, 700, 2500},
	    {96, 130, 511}, {96, 130, 512}, {95, 130, 512}};

	(void)state;
	prng_seed(&r, 5);
	assert_int_equal(team_new(&team, 3), ERR_OK);
	for (size_t q = 0; q < 3 * sizeof(sides) / sizeof(*sides); q++) {
		size_t m = sides[q / 3][0], n = sides[q / 3][1], k = sides[q / 3][2];
		struct guarded a = guarded_random(&r, m * k), b = guarded_random(&r, n * k);
		struct guarded c[2] = {guarded_new(m * n), guarded_new(m * n)};
		struct guarded to = guarded_new(gemm_pack_floats(k, n)),
			       before = guarded_random(&r, m);
		struct gemm g = {.m = m,
		    .n = n,
		    .k = k,
		    .a = a.x,
		    .a_row = k,
		    .a_col = 1,
		    .b = b.x,
		    .b_row = n,
		    .c = c[0].x,
		    .c_row = n,
		    .alpha = 1,
		    .before = before.x,
		    .arithmetic = (enum gemm_arithmetic)(q % 3)};
		gemm_outer(&g);
		g.c = c[1].x;
		g.team = team;
		gemm_pack(&g, to.x, false);
		gemm_outer(&g);
		assert_memory_equal(c[0].x, c[1].x, m * n * sizeof(float));
		for (size_t i = 0; i < m; i++) {
			double want = (double)before.x[i];
			for (size_t p = 0; p < k; p++)
				want += (double)a.x[i * k + p] * (double)b.x[p * n + n - 1];
			assert_true(fabs((double)c[0].x[i * n + n - 1] - want) < 1e-4);
		}
		guarded_free(&before);
		guarded_free(&a);
		guarded_free(&b);
		guarded_free(&c[0]);
		guarded_free(&c[1]);
		guarded_free(&to);
	}
	team_free(team);
}

/* What OpenBLAS works out in stripes has the bits of one call, whatever its processor's tiles. */
static void
stripes(void **state)
{
	struct prng r;
	struct team *team[2];

	(void)state;
	prng_seed(&r, 8);
	assert_int_equal(team_new(&team[0], 2), ERR_OK);
	assert_int_equal(team_new(&team[1], 5), ERR_OK);
	for (int i = 0; i < 24; i++) {
		bool dot = i % 3 == 0, across = i % 3 == 1;
		size_t m = 96 + prng_below(&r, 600), n = 200 + prng_below(&r, 500);
		size_t k = 20000000 / (m * n) + 24 + prng_below(&r, i % 2 ? 700 : 100);
		/* More rows than OpenBLAS takes at once. */
		if (i == 0)
			m = 110017, n = 24, k = 26;
		struct guarded a = guarded_random(&r, m * k), b = guarded_random(&r, n * k);
		struct guarded whole = guarded_random(&r, m * n), c = guarded_new(m * n);
		struct gemm g = {.m = m,
		    .n = n,
		    .k = k,
		    .a = a.x,
		    .a_row = across ? 1 : k,
		    .a_col = across ? m : 1,
		    .b = b.x,
		    .b_row = dot ? k : n,
		    .c_row = n,
		    .alpha = i % 4 ? 1 : -0.01f,
		    .beta = i % 5 ? 1 : 0.75f,
		    .arithmetic = i % 4 == 3 ? GEMM_FAST : GEMM_MIXED};
		struct guarded before = guarded_new(m * n);
		memcpy(before.x, whole.x, m * n * sizeof(float));
		g.c = whole.x;
		(dot ? gemm_dot : gemm_outer)(&g);
		for (int t = 0; t < 2; t++) {
			memcpy(c.x, before.x, m * n * sizeof(float));
			g.c = c.x;
			g.team = team[t];
			(dot ? gemm_dot : gemm_outer)(&g);
			assert_memory_equal(c.x, whole.x, m * n * sizeof(float));
		}
		guarded_free(&a);
		guarded_free(&b);
		guarded_free(&c);
		guarded_free(&whole);
		guarded_free(&before);
	}
	team_free(team[0]);
	team_free(team[1]);
}

/* Many rows by rows that fuse are many rows by columns, in one piece and by a team. */
static void
turned(void **state)
{
	struct prng r;
	struct team *team;
	const size_t sides[][3] = {
	    {24, 16, 16}, {64, 130, 640}, {301, 50, 190}, {25, 700, 193}, {400, 17, 1023}};

	(void)state;
	prng_seed(&r, 9);
	assert_int_equal(team_new(&team, 5), ERR_OK);
	for (size_t q = 0; q < sizeof(sides) / sizeof(*sides); q++) {
		size_t m = sides[q][0], n = sides[q][1], k = sides[q][2], a_row = k + q;
		struct guarded a = guarded_random(&r, m * a_row), rows = guarded_random(&r, n * k);
		struct guarded columns = guarded_new(n * k), before = guarded_random(&r, m * n);
		struct guarded c[3] = {guarded_new(m * n), guarded_new(m * n), guarded_new(m * n)};
		struct gemm g = {.m = m,
		    .n = n,
		    .k = k,
		    .a = a.x,
		    .a_row = a_row,
		    .a_col = 1,
		    .c_row = n,
		    .alpha = q % 2 ? 1 : -0.3f,
		    .beta = (float)(q % 3) / 2,
		    .arithmetic = GEMM_FAST,
		    .own = true};
		for (size_t i = 0; i < n * k; i++)
			columns.x[i % k * n + i / k] = rows.x[i];
		for (size_t i = 0; i < 3; i++) {
			memcpy(c[i].x, before.x, m * n * sizeof(float));
			g.b = i == 0 ? columns.x : rows.x;
			g.b_row = i == 0 ? n : k;
			g.c = c[i].x;
			g.team = i == 2 ? team : NULL;
			(i == 0 ? gemm_outer : gemm_dot)(&g);
			assert_memory_equal(c[0].x, c[i].x, m * n * sizeof(float));
		}
		guarded_free(&a);
		guarded_free(&rows);
		guarded_free(&columns);
		guarded_free(&before);
		for (size_t i = 0; i < 3; i++)
			guarded_free(&c[i]);
	}
	team_free(team);
}

static void
spots(void **state)
{
	struct prng r;

	(void)state;
	prng_seed(&r, 4);
	for (size_t width = 16; width <= 336; width += 16) {
		spots_of(&r, width, false);
		spots_of(&r, width, true);
	}
}

/* What is not zero, in its order, of every kind of zero and of value: nothing is read behind it. */
static void
found(void **state)
{
	static const float kinds[] = {0, -0.0F, 1.5F, 0, NAN, 1e-40F, 0, INFINITY};
	struct set set[SETS];
	struct prng r;

	(void)state;
	prng_seed(&r, 9);
	for (size_t n = 0; n <= 70; n++) {
		struct guarded from = guarded_new(n), places = guarded_new(n);
		uint32_t want_at[70], at[70 + GEMM_PAST], *place = (uint32_t *)(void *)places.x;
		float want[70], value[70 + GEMM_PAST];
		size_t wanted = 0;
		for (size_t i = 0; i < n; i++) {
			from.x[i] = kinds[prng_u64(&r) % 8];
			place[i] = (uint32_t)prng_u64(&r);
			want[wanted] = from.x[i];
			want_at[wanted] = place[i];
			wanted += from.x[i] != 0;
		}
		for (size_t k = 0, count = sets(set); k < count; k++) {
			assert_int_equal(set[k].kernels->find(at, value, from.x, place, n), wanted);
			assert_memory_equal(value, want, wanted * sizeof(float));
			assert_memory_equal(at, want_at, wanted * sizeof(*at));
		}
		guarded_free(&from);
		guarded_free(&places);
	}
}

/* What each arithmetic runs on: fast ones on the widest that fuse, if there are any. */
static void
choice(void **state)
{
	struct set set[SETS];
	size_t n = sets(set), widest = 0;

	(void)state;
	for (size_t i = 0; i < n; i++)
		if (!set[i].fused)
			widest = i;
	assert_ptr_equal(gemm_kernels_of(GEMM_ROUNDED), set[widest].kernels);
	assert_ptr_equal(gemm_kernels_of(GEMM_FUSED), set[n - 1].kernels);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(random_shapes),
	    cmocka_unit_test(every_tile),
	    cmocka_unit_test(large),
	    cmocka_unit_test(blocks),
	    cmocka_unit_test(doors),
	    cmocka_unit_test(choice),
	    cmocka_unit_test(stripes),
	    cmocka_unit_test(turned),
	    cmocka_unit_test(spots),
	    cmocka_unit_test(found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
