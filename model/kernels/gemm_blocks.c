#include <assert.h>
#include <string.h>

#include "gemm_inside.h"
#include "runs.h"

/* Fewer rows than these do not pay for packing b, shorter sums or narrower rows for the rest of it. */
#define LEAST_ROWS 24
#define LEAST_DEEP 16
#define FIND_ROWS 40 /* fewer are quicker from where the rows of b lie */
#define AHEAD 8 /* rows of a packed side: the CPU does not guess such distances */

/* What one block of c holds, and how long its sums are before they are put down. In the second-level cache, and on the stack. */
struct shape {
	size_t rows, deep;
};
/* Rows of a are read where they lie, so that many pass by one block of b; columns of a are packed as well. */
static const struct shape of_rows = {192, 192}, of_columns = {96, 128};
#define COLUMNS GEMM_BLOCK_COLUMNS
#define ROOM_B (192 * COLUMNS)
#define ROOM_SUMS (192 * COLUMNS)
#define ROOM_A (96 * 128)
/* Of dots, four panels of the longest: the widest tile of any kernels. */
#define ROOM_LANES (4 * GEMM_LANE_STEPS(GEMM_DOT_BLOCK) * 16 * GEMM_PANEL)

struct blocks {
	const struct shape *shape;
	gemm_part *part;
	float b[ROOM_B], sums[ROOM_SUMS], a[ROOM_A];
};

bool
gemm_blocks_pay(const struct gemm *g)
{
	if (g->turned)
		return true;
	if (g->b_at)
		return g->m >= FIND_ROWS;
	return !g->packed && g->m >= LEAST_ROWS && g->n >= GEMM_PANEL && g->k >= LEAST_DEEP;
}

static void
pack_a(float *to, const struct gemm *g)
{
	for (size_t p = 0; p < g->k; p++) {
		const float *from = g->a + p * g->a_col;
		for (size_t i = 0; p + AHEAD < g->k && i < g->m; i += GEMM_PANEL)
			__builtin_prefetch(from + AHEAD * g->a_col + i);
		memcpy(to + p * g->m, from, g->m * sizeof(float));
	}
}

/* The products of k elements at p, added to the sums of those before. */
static void
go_on(struct blocks *w, const struct gemm *block, size_t p, size_t k)
{
	struct gemm g = *block;

	g.k = k;
	g.a += p * g.a_col;
	if (g.b_at)
		g.b_at += p;
	else
		g.b += g.turned ? p : p * g.b_row;
	gemm_pack_panels(w->b, &g, g.turned);
	g.b = w->b;
	g.b_at = NULL;
	g.packed = true;
	if (w->shape == &of_columns) {
		pack_a(w->a, &g);
		g.a = w->a;
		g.a_col = g.m;
	}
	for (size_t i = 0; g.chain && p == 0 && i < g.m; i++)
		memcpy(w->sums + i * COLUMNS, g.c + i * g.c_row, g.n * sizeof(float));
	if (p + k < block->k) {
		g.alpha = 1;
		g.beta = 0;
		g.before = NULL;
		g.c = w->sums;
		g.c_row = COLUMNS;
		g.n = (g.n + GEMM_PANEL - 1) / GEMM_PANEL * GEMM_PANEL;
	}
	w->part(&g, g.chain || p > 0 ? w->sums : NULL);
}

void
gemm_blocks_outer(const struct gemm *g, gemm_part *part)
{
	struct blocks w;

	w.shape = g->a_col != 1 && g->a_row == 1 ? &of_columns : &of_rows;
	w.part = part;
	for (size_t j = 0; j < g->n; j += COLUMNS)
		for (size_t i = 0; i < g->m; i += w.shape->rows) {
			struct gemm block = *g;
			block.m = gemm_least(g->m - i, w.shape->rows);
			block.n = gemm_least(g->n - j, COLUMNS);
			block.a += i * g->a_row;
			if (g->b_at)
				block.b_first += j;
			else
				block.b += g->turned ? j * g->b_row : j;
			block.c += i * g->c_row + j;
			block.before = g->before ? g->before + i : NULL;
			for (size_t p = 0; p == 0 || p < g->k; p += w.shape->deep)
				go_on(&w, &block, p, gemm_least(g->k - p, w.shape->deep));
		}
}

static void
pack_lanes(float *to, const struct gemm *g)
{
	size_t steps = GEMM_LANE_STEPS(g->k), row = steps * GEMM_PANEL;

	for (size_t j = 0; j < g->n; j += GEMM_PANEL, to += 16 * row) {
		size_t columns = gemm_least(g->n - j, GEMM_PANEL);
		if (columns < GEMM_PANEL)
			memset(to, 0, 16 * row * sizeof(float));
		for (size_t p = 0; p < g->k; p += 16)
			runs_turn(to + p, row, g->b + j * g->b_row + p, g->b_row, columns,
			    gemm_least(g->k - p, 16));
	}
}

void
gemm_blocks_dot(const struct gemm *g, gemm_part *part)
{
	float b[ROOM_LANES];
	size_t step = gemm_dot_step(g->k), panel = GEMM_LANE_STEPS(step) * 16 * GEMM_PANEL;
	size_t columns = ROOM_LANES / panel * GEMM_PANEL;

	static_assert(GEMM_LANE_STEPS(GEMM_DOT_BLOCK) * 16 * GEMM_PANEL <= ROOM_LANES, "one panel");
	for (size_t p = 0; p < g->k; p += step)
		for (size_t j = 0; j < g->n; j += columns) {
			struct gemm own = *g;
			own.k = gemm_least(g->k - p, step);
			own.n = gemm_least(g->n - j, columns);
			own.a += p;
			own.b += j * g->b_row + p;
			own.c += j;
			own.beta = p > 0 ? 1 : g->beta;
			pack_lanes(b, &own);
			own.b = b;
			part(&own, NULL);
		}
}
