#include <string.h>

#include "gemm_blas.h"
#include "gemm_inside.h"
#include "team.h"

#define STRIPE_COLUMNS 64
#define STRIPE_ROWS 6

const struct gemm_kernels *
gemm_kernels_of(enum gemm_arithmetic how)
{
	(void)how;
#if GEMM_NEON
	if (how == GEMM_FAST)
		return &gemm_neon_fused_kernels;
#endif
#if GEMM_X86
	if (how == GEMM_FAST && __builtin_cpu_supports("avx512f"))
		return &gemm_avx512_fused_kernels;
	if (how == GEMM_FAST && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		return &gemm_avx2_fused_kernels;
	if (__builtin_cpu_supports("avx512f"))
		return &gemm_avx512_kernels;
	if (__builtin_cpu_supports("avx2"))
		return &gemm_avx2_kernels;
#endif
	return &gemm_plain_kernels;
}

/* A product in stripes of c: of columns, or of rows where these are more. */
struct stripes {
	const struct gemm *g;
	size_t count;
	bool dot, columns;
};

static void
run_stripe(void *arg, size_t i, unsigned lane)
{
	const struct stripes *s = arg;
	struct gemm g = *s->g;
	/* Whole vectors, whole tiles. */
	size_t unit = s->columns ? STRIPE_COLUMNS : STRIPE_ROWS, all = s->columns ? g.n : g.m;
	size_t units = (all + unit - 1) / unit, first = units * i / s->count * unit;
	size_t last = units * (i + 1) / s->count * unit;

	(void)lane;
	last = last < all ? last : all;
	if (s->columns) {
		g.n = last - first;
		g.b += s->dot ? first * g.b_row : g.packed ? first * g.k : first;
		g.c += first;
	} else {
		g.m = last - first;
		g.a += first * g.a_row;
		g.c += first * g.c_row;
	}
	if (last > first)
		(s->dot ? gemm_kernels_of(g.arithmetic)->dot
			: gemm_kernels_of(g.arithmetic)->outer)(&g);
}

static void
run(const struct gemm *g, bool dot)
{
	struct stripes s = {.g = g, .dot = dot, .columns = g->n >= g->m};
	size_t unit = s.columns ? STRIPE_COLUMNS : STRIPE_ROWS, all = s.columns ? g->n : g->m;

	if (gemm_blas(g, dot))
		return;
	s.count = team_pieces(
	    g->team, (double)g->m * (double)g->n * (double)g->k, (all + unit - 1) / unit);
	if (s.count > 1)
		team_run(g->team, s.count, run_stripe, &s);
	else
		(dot ? gemm_kernels_of(g->arithmetic)->dot : gemm_kernels_of(g->arithmetic)->outer)(
		    g);
}

void
gemm_outer(const struct gemm *g)
{
	run(g, false);
}

void
gemm_dot(const struct gemm *g)
{
	run(g, true);
}

void
gemm_gather(enum gemm_arithmetic how, float *to, const float *rows, const struct gemm_spots *s,
    size_t width)
{
	gemm_kernels_of(how)->gather(to, rows, s, width);
}

void
gemm_scatter(enum gemm_arithmetic how, float *rows, const float *from, const struct gemm_spots *s,
    size_t width)
{
	gemm_kernels_of(how)->scatter(rows, from, s, width);
}

void
gemm_dots(enum gemm_arithmetic how, float *lanes, const float *a, const float *b,
    const uint32_t *b_at, size_t k, size_t n)
{
	size_t whole = n - n % 16;
	float last[16] = {0};

	gemm_kernels_of(how)->dots(lanes, a, b, b_at, k, whole);
	if (whole == n)
		return;
	memcpy(last, a + whole, (n - whole) * sizeof(float));
	gemm_kernels_of(how)->dots(lanes, last, b + whole, b_at, k, 16);
}
