#include <string.h>

#include "cpu.h"
#include "gemm_choice.h"
#include "gemm_inside.h"
#include "runs.h"

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

typedef struct {
	float v[GEMM_PANEL];
} panel_row;

/* A panel of rows that lie anywhere. */
CPU_CLONES static void
find_rows(float *to, const float *from, const uint32_t *at, size_t k)
{
	for (size_t p = 0; p < k; p++, to += GEMM_PANEL)
		*(panel_row *)(void *)to = *(const panel_row *)(const void *)(from + at[p]);
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

	for (size_t j = 0; g->b_at && j < g->n; j += GEMM_PANEL)
		find_rows(to + j * g->k, g->b + gemm_column(g, j), g->b_at, g->k);
	if (g->b_at)
		return;
	if (whole < g->n)
		memset(to + whole * g->k, 0, GEMM_PANEL * g->k * sizeof(float));
	for (size_t j = 0; turned && j < g->n; j += GEMM_PANEL)
		runs_turn(to + j * g->k, GEMM_PANEL, g->b + j * g->b_row, g->b_row,
		    gemm_least(g->n - j, GEMM_PANEL), g->k);
	for (size_t j = 0; !turned && j < g->n; j += GROUP)
		copy_rows(to + j * g->k, g->b + j, g->b_row, g->k, gemm_least(g->n - j, GROUP));
}

void
gemm_pack(struct gemm *g, float *to, bool turned)
{
	g->packed = gemm_choice_way(g, false) != GEMM_OPENBLAS;
	if (g->packed)
		gemm_pack_panels(to, g, turned);
	else if (turned)
		runs_turn(to, g->n, g->b, g->b_row, g->n, g->k);
	else
		return;
	g->b = to;
	g->b_row = g->n;
}
