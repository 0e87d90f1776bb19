#ifndef GEMM_H
#define GEMM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Dense matrix products in f32, row by row in memory. Products of few rows read b in place, since packing b would cost more than it saves;
 * products of many rows pack blocks of b on the stack (gemm_blocks.c: up to 270 KiB of it); a b that many products share is packed once
 * (gemm_pack).
 *
 * The order of every sum of our own kernels is part of the contract: the same bits on every machine and with every compiler, except for
 * kernels that fuse. OpenBLAS gives the same bits for one kind of CPU and one version of OpenBLAS.
 */
struct team;

enum gemm_arithmetic {
	GEMM_MIXED, /* our own kernels, which round each product; large ones by OpenBLAS (gemm_inside.h) */
	GEMM_EXACT, /* our own kernels, which round each product */
	GEMM_FAST, /* our own kernels, whose products go into the sum unrounded where the CPU can; large ones by OpenBLAS */
};

struct gemm {
	size_t m, n, k;
	const float *a; /* element (i, p) at a[i * a_row + p * a_col] */
	size_t a_row, a_col;
	const float *b; /* outer: (p, j) at b[p * b_row + j]; dot: (j, p) at b[j * b_row + p] */
	size_t b_row;
	const uint32_t *b_at; /* outer: unless NULL, row p of b begins at b[b_at[p]]. See below */
	/* With b_at: the columns of b come in runs of b_run, a multiple of 16, with b_skip floats between runs; b_run 0: one run. */
	size_t b_run, b_skip;
	size_t b_first; /* set by gemm.c alone: number of columns of b before the first one used */
	float *c; /* element (i, j) at c[i * c_row + j] */
	size_t c_row;
	float alpha, beta; /* c = beta * c + alpha * sum; c is not read when beta is 0 */
	/* Outer, with beta 0: unless NULL, row i of c counts as before[i] everywhere, and beta as 1. Not chained. */
	const float *before;
	bool chain; /* outer: a sum begins with the element of c, not with 0. alpha is 1, beta 0 */
	enum gemm_arithmetic arithmetic;
	bool own; /* outer: never by OpenBLAS, whose bits depend on m and which packs b each time */
	bool packed; /* set by gemm_pack: b lies in panels, b_row has no meaning */
	/* outer: b lies as for gemm_dot; b is always packed, and transposed while it is packed. Never by OpenBLAS, nor through
	 * gemm_pack. */
	bool turned;
	struct team *team; /* large products are cut by rows or columns of c; NULL: one thread */
};

/*
 * c = a * b as sums of rows of b: the sum over p runs in ascending order, one product after the other.
 *
 * With b_at, rows of b lie anywhere and may overlap, as convolutions have them in padded planes: rows are read in whole vectors, up to
 * GEMM_PAST floats, of any value, behind the n columns; a_col is 1. Products with b_at or `chain` are never computed by OpenBLAS.
 */
#define GEMM_PAST 16
void gemm_outer(const struct gemm *g);

/*
 * A b that many outer products read is packed once. gemm_pack writes g's b to `to`, which has gemm_pack_floats(k, n) floats, and lets g
 * read b there, so that gemm_outer may run g again and again: with any a, c, alpha, beta and team, as long as all else in g and the
 * contents of `to` stay as gemm_pack left them. m, n, k, the strides (a_row, a_col, c_row), `arithmetic` and `own` must be set before: for
 * OpenBLAS b is stored row by row, or read in place if it is not turned. The bits are those of the same product unpacked.
 *
 *	struct gemm g = {.m = m, .n = n, .k = k, .b = weight, .b_row = k, .a_row = ..., ...};
 *	gemm_pack(&g, work, true);
 *	for (each step) { g.a = ...; g.c = ...; gemm_outer(&g); }
 *
 * turned: b lies as for gemm_dot, (p, j) at b[j * b_row + p].
 */
size_t gemm_pack_floats(size_t k, size_t n); /* k * (n + 15) must fit */
void gemm_pack(struct gemm *g, float *to, bool turned);

/* c = dot products of rows of a with rows of b (a_col is 1). The sum runs in blocks of at most GEMM_DOT_BLOCK; within a block lane
 * p % 16 collects its products in ascending order, and the lanes are folded by halves. With GEMM_FAST a product of many rows (m >= 24,
 * n >= 16, k from 16 to 1,023) sums in the order of gemm_outer. */
#define GEMM_DOT_BLOCK 1024
void gemm_dot(const struct gemm *g);

/* Should a convolution, whose product for one example is m x n x k, lay its rows out for OpenBLAS? If not, it reads rows in place, or of
 * several examples at once. */
bool gemm_slabs(enum gemm_arithmetic how, size_t m, size_t n, size_t k);

/* The elements of a sparse vector: value[i] belongs to the row that begins at `at[i]`. */
struct gemm_spots {
	size_t count;
	const uint32_t *at;
	const float *value;
};
/* to[j] += sum over i, ascending, of value[i] * rows[at[i] + j]; j < width, a multiple of 16. */
void gemm_gather(enum gemm_arithmetic how, float *to, const float *rows, const struct gemm_spots *s,
    size_t width);
/* rows[at[i] + j] += value[i] * from[j] for each i, ascending. */
void gemm_scatter(enum gemm_arithmetic how, float *rows, const float *from,
    const struct gemm_spots *s, size_t width);
/* Finds the elements of from[0..n) that are not zero, in order: value[j] is the element, at[j] the number at the same index of `places`.
 * Returns how many there are; up to GEMM_PAST elements behind them in `value` and `at` are overwritten. */
size_t gemm_find(enum gemm_arithmetic how, uint32_t *at, float *value, const float *from,
    const uint32_t *places, size_t n);

/* Products of k arrays with one, summed in sixteen lanes (lanes.h): lanes[p][i % 16] += a[i] * b[b_at[p] + i], i < n ascending. The
 * GEMM_PAST floats behind an array of b must be finite. */
void gemm_dots(enum gemm_arithmetic how, float *lanes, const float *a, const float *b,
    const uint32_t *b_at, size_t k, size_t n);

#endif
