#include <string.h>

#include "gemm_blas.h"
#include "gemm_inside.h"

/* to[p * to_row + j] = from[j * row + p] for four p and four j */
static void
turn_four(float *to, size_t to_row, const float *from, size_t row)
{
	gemm_vec4 a = VEC4(from), b = VEC4(from + row), c = VEC4(from + 2 * row),
		  d = VEC4(from + 3 * row);

	UNROLL for (int i = 0; i < 4; i++) * (gemm_vec4_unaligned *)(to + (size_t)i * to_row) =
	    (gemm_vec4){a[i], b[i], c[i], d[i]};
}

static void
turn(float *to, size_t to_row, const float *from, size_t row, size_t k, size_t n)
{
	size_t deep = k / 4 * 4, wide = n / 4 * 4;

	for (size_t j = 0; j < wide; j += 4)
		for (size_t p = 0; p < deep; p += 4)
			turn_four(to + p * to_row + j, to_row, from + j * row + p, row);
	for (size_t p = 0; p < k; p++)
		for (size_t j = p < deep ? wide : 0; j < n; j++)
			to[p * to_row + j] = from[j * row + p];
}

/* A constant length, so that it is no call. */
static void
copy_rows(float *to, const float *from, size_t row, size_t k, size_t n)
{
	for (size_t p = 0; p < k; p++, to += GEMM_PANEL, from += row)
		if (n == GEMM_PANEL)
			memcpy(to, from, GEMM_PANEL * sizeof(float));
		else
			memcpy(to, from, n * sizeof(float));
}

static void
pack_panel(float *to, const float *b, size_t row, size_t k, size_t n, bool turned)
{
	if (n < GEMM_PANEL)
		memset(to, 0, k * GEMM_PANEL * sizeof(float));
	if (turned)
		turn(to, GEMM_PANEL, b, row, k, n);
	else
		copy_rows(to, b, row, k, n);
}

/* As OpenBLAS takes it. */
static void
pack_rows(float *to, const struct gemm *g, bool turned)
{
	if (turned)
		for (size_t j = 0; j < g->n; j += GEMM_PANEL)
			turn(to + j, g->n, g->b + j * g->b_row, g->b_row, g->k,
			    g->n - j < GEMM_PANEL ? g->n - j : GEMM_PANEL);
	for (size_t p = 0; !turned && p < g->k; p++)
		memcpy(to + p * g->n, g->b + p * g->b_row, g->n * sizeof(float));
}

size_t
gemm_pack_floats(size_t k, size_t n)
{
	return (n + GEMM_PANEL - 1) / GEMM_PANEL * GEMM_PANEL * k;
}

void
gemm_pack(struct gemm *g, float *to, bool turned)
{
	struct gemm from = *g;

	g->b = to;
	g->b_row = g->n;
	g->packed = !gemm_blas_takes(g);
	if (!g->packed)
		pack_rows(to, &from, turned);
	for (size_t j = 0; g->packed && j < g->n; j += GEMM_PANEL)
		pack_panel(to + j * g->k, from.b + (turned ? j * from.b_row : j), from.b_row, g->k,
		    g->n - j < GEMM_PANEL ? g->n - j : GEMM_PANEL, turned);
}
