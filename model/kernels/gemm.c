#include <assert.h>
#include <string.h>

#include "gemm_choice.h"
#include "gemm_inside.h"
#include "team.h"

#define STRIPE_COLUMNS 64
#define STRIPE_ROWS 6
#define STRIPE_TURNED 48 /* rows, each stripe of which packs all of b */

const struct gemm_kernels *
gemm_kernels_of(enum gemm_way way)
{
	bool fused = way == GEMM_FUSED;

	(void)fused;
#if GEMM_NEON
	if (fused)
		return &gemm_neon_fused_kernels;
#endif
#if GEMM_X86
	unsigned bits = gemm_choice_bits();
	if (bits >= 512 && __builtin_cpu_supports("avx512f"))
		return fused ? &gemm_avx512_fused_kernels : &gemm_avx512_kernels;
	if (fused && bits >= 256 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		return &gemm_avx2_fused_kernels;
	if (bits >= 256 && __builtin_cpu_supports("avx2"))
		return &gemm_avx2_kernels;
#endif
	return &gemm_plain_kernels;
}

/* A product in stripes of c, of whole units: of columns, or of rows where these are more; OpenBLAS's are always of rows. */
struct stripes {
	const struct gemm *g;
	size_t unit, units, count;
	enum gemm_way way;
	bool dot, columns;
};

static void
multiply(const struct stripes *s, const struct gemm *g)
{
	if (s->way == GEMM_OPENBLAS)
		gemm_blas(g, s->dot);
	else
		(s->dot ? gemm_kernels_of(s->way)->dot : gemm_kernels_of(s->way)->outer)(g);
}

static void
run_stripe(void *arg, size_t i, unsigned lane)
{
	const struct stripes *s = arg;
	struct gemm g = *s->g;
	size_t all = s->columns ? g.n : g.m, first = s->units * i / s->count * s->unit;
	size_t last = i + 1 < s->count ? s->units * (i + 1) / s->count * s->unit : all;

	(void)lane;
	if (s->columns) {
		g.n = last - first;
		if (g.b_at)
			g.b_first += first;
		else
			g.b += s->dot || g.turned ? first * g.b_row
			    : g.packed		  ? first * g.k
						  : first;
		g.c += first;
	} else {
		g.m = last - first;
		g.a += first * g.a_row;
		g.c += first * g.c_row;
		g.before = g.before ? g.before + first : NULL;
	}
	multiply(s, &g);
}

/* Whole vectors and tiles; the result is how many stripes there may be. */
static size_t
cut(struct stripes *s)
{
	const struct gemm *g = s->g;

	s->columns = g->n >= g->m || (g->turned && g->n >= STRIPE_COLUMNS * team_active(g->team));
	s->unit = s->columns ? STRIPE_COLUMNS : g->turned ? STRIPE_TURNED : STRIPE_ROWS;
	s->units = ((s->columns ? g->n : g->m) + s->unit - 1) / s->unit;
	return s->units;
}

static size_t
cut_blas(struct stripes *s)
{
	const struct gemm *g = s->g;
	size_t most = (size_t)team_active(g->team) * GEMM_BLAS_EACH;

	s->unit = GEMM_BLAS_ROWS;
	s->units = g->m <= GEMM_BLAS_MOST ? g->m / s->unit : 1;
	return gemm_least(most, s->units / (GEMM_BLAS_STRIPE / (g->n * g->k * s->unit) + 1));
}

static void
run(const struct gemm *g, bool dot, enum gemm_way way)
{
	struct stripes s = {.g = g, .dot = dot, .way = way};
	size_t most = way == GEMM_OPENBLAS ? cut_blas(&s) : cut(&s);

	s.count = team_pieces(g->team, (double)g->m * (double)g->n * (double)g->k, most);
	if (s.count > 1)
		team_run(g->team, s.count, run_stripe, &s);
	else
		multiply(&s, g);
}

/* Of many rows a sum in one lane is quicker than in sixteen, and unlike OpenBLAS's cut without end; not so where it walks through a b that
 * is larger than caches. */
void
gemm_run(const struct gemm *g, bool dot, enum gemm_way way)
{
	struct gemm turned = *g;

	turned.turned |= dot && way == GEMM_FUSED && g->k < GEMM_DOT_BLOCK && gemm_blocks_pay(g);
	run(&turned, dot && !turned.turned, way);
}

void
gemm_outer(const struct gemm *g)
{
	gemm_run(g, false, gemm_choice_way(g, false));
}

void
gemm_dot(const struct gemm *g)
{
	assert(g->a_col == 1 && !g->b_at && !g->packed && !g->chain && !g->before);
	gemm_run(g, true, gemm_choice_way(g, true));
}

bool
gemm_slabs(enum gemm_arithmetic how, size_t m, size_t n, size_t k)
{
	const struct gemm g = {
	    .m = m, .n = n, .k = k, .a_row = k, .a_col = 1, .b_row = n, .c_row = n};

	return how == GEMM_MIXED ||
	    (gemm_choice_way_of(how, GEMM_SLABS) == GEMM_OPENBLAS && gemm_blas_can(&g));
}

static const struct gemm_kernels *
of_spots(enum gemm_arithmetic how, size_t width)
{
	return gemm_kernels_of(
	    gemm_choice_way_of(how, width <= GEMM_NARROW ? GEMM_SPOTS_NARROW : GEMM_SPOTS));
}

void
gemm_gather(enum gemm_arithmetic how, float *to, const float *rows, const struct gemm_spots *s,
    size_t width)
{
	of_spots(how, width)->gather(to, rows, s, width);
}

void
gemm_scatter(enum gemm_arithmetic how, float *rows, const float *from, const struct gemm_spots *s,
    size_t width)
{
	of_spots(how, width)->scatter(rows, from, s, width);
}

size_t
gemm_find(enum gemm_arithmetic how, uint32_t *at, float *value, const float *from,
    const uint32_t *places, size_t n)
{
	return gemm_kernels_of(gemm_choice_way_of(how, GEMM_SPOTS))
	    ->find(at, value, from, places, n);
}

void
gemm_dots(enum gemm_arithmetic how, float *lanes, const float *a, const float *b,
    const uint32_t *b_at, size_t k, size_t n)
{
	const struct gemm_kernels *kernels = gemm_kernels_of(gemm_choice_way_of(how, GEMM_LANES));
	size_t whole = n - n % 16;
	float last[16] = {0};

	kernels->dots(lanes, a, b, b_at, k, whole);
	if (whole == n)
		return;
	memcpy(last, a + whole, (n - whole) * sizeof(float));
	kernels->dots(lanes, last, b + whole, b_at, k, 16);
}
