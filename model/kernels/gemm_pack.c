#include <string.h>

#include "gemm_blas.h"
#include "gemm_inside.h"

#if defined(__clang__)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
typedef int picks __attribute__((vector_size(16)));
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (picks){__VA_ARGS__})
#endif
#define PUT(p, v) (*(gemm_vec4_unaligned *)(p) = (v))

/* to[p * to_row + j] = from[j * row + p] for four p and four j */
static void
turn_four(float *to, size_t to_row, const float *from, size_t row)
{
	gemm_vec4 a = VEC4(from), b = VEC4(from + row), c = VEC4(from + 2 * row),
		  d = VEC4(from + 3 * row);
	gemm_vec4 ab = SHUFFLE(a, b, 0, 4, 1, 5), cd = SHUFFLE(c, d, 0, 4, 1, 5);
	gemm_vec4 AB = SHUFFLE(a, b, 2, 6, 3, 7), CD = SHUFFLE(c, d, 2, 6, 3, 7);

	PUT(to, SHUFFLE(ab, cd, 0, 1, 4, 5));
	PUT(to + to_row, SHUFFLE(ab, cd, 2, 3, 6, 7));
	PUT(to + 2 * to_row, SHUFFLE(AB, CD, 0, 1, 4, 5));
	PUT(to + 3 * to_row, SHUFFLE(AB, CD, 2, 3, 6, 7));
}

void
gemm_pack_turn(float *to, size_t to_row, const float *from, size_t row, size_t k, size_t n)
{
	size_t deep = k / 4 * 4, wide = n / 4 * 4;

	for (size_t j = 0; j < wide; j += 4)
		for (size_t p = 0; p < deep; p += 4)
			turn_four(to + p * to_row + j, to_row, from + j * row + p, row);
	for (size_t p = 0; p < k; p++)
		for (size_t j = p < deep ? wide : 0; j < n; j++)
			to[p * to_row + j] = from[j * row + p];
}

/* Rows of at most GROUP columns into their panels: of each row, what lies together. */
#define GROUP ((size_t)4 * GEMM_PANEL)
#define AHEAD 8 /* rows, which lie too far apart for the CPU to guess */

static void
copy_rows(float *to, const float *from, size_t row, size_t k, size_t n)
{
	for (size_t p = 0; p < k; p++, to += GEMM_PANEL, from += row)
		for (size_t j = 0; j < n; j += GEMM_PANEL) {
			if (p + AHEAD < k)
				__builtin_prefetch(from + AHEAD * row + j);
			/* A constant length is no call. */
			if (n - j >= GEMM_PANEL)
				memcpy(to + j * k, from + j, GEMM_PANEL * sizeof(float));
			else
				memcpy(to + j * k, from + j, (n - j) * sizeof(float));
		}
}

/* As OpenBLAS takes it. */
static void
pack_rows(float *to, const struct gemm *g, bool turned)
{
	if (turned)
		for (size_t j = 0; j < g->n; j += GEMM_PANEL)
			gemm_pack_turn(to + j, g->n, g->b + j * g->b_row, g->b_row, g->k,
			    gemm_least(g->n - j, GEMM_PANEL));
	for (size_t p = 0; !turned && p < g->k; p++)
		memcpy(to + p * g->n, g->b + p * g->b_row, g->n * sizeof(float));
}

size_t
gemm_pack_floats(size_t k, size_t n)
{
	return (n + GEMM_PANEL - 1) / GEMM_PANEL * GEMM_PANEL * k;
}

void
gemm_pack_panels(float *to, const struct gemm *g, bool turned)
{
	size_t whole = g->n / GEMM_PANEL * GEMM_PANEL;

	if (whole < g->n)
		memset(to + whole * g->k, 0, GEMM_PANEL * g->k * sizeof(float));
	for (size_t j = 0; turned && j < g->n; j += GEMM_PANEL)
		gemm_pack_turn(to + j * g->k, GEMM_PANEL, g->b + j * g->b_row, g->b_row, g->k,
		    gemm_least(g->n - j, GEMM_PANEL));
	for (size_t j = 0; !turned && j < g->n; j += GROUP)
		copy_rows(to + j * g->k, g->b + j, g->b_row, g->k, gemm_least(g->n - j, GROUP));
}

void
gemm_pack(struct gemm *g, float *to, bool turned)
{
	g->packed = !gemm_blas_takes(g);
	if (g->packed)
		gemm_pack_panels(to, g, turned);
	else
		pack_rows(to, g, turned);
	g->b = to;
	g->b_row = g->n;
}
