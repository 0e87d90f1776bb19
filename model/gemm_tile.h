/*
 * The kernels of gemm.c for one instruction set. The including file defines
 *   TARGET                 attribute of every function
 *   VEC, LANES             a vector of floats and its length (a divisor of 16)
 *   LOAD, STORE(p, v)      unaligned
 *   LOAD_PART(p, r), STORE_PART(p, v, r)    the first r of LANES elements; the rest reads as zero
 *   SPLAT(x)               x in all lanes
 *   OUTER_ROWS, OUTER_VECS, DOT_ROWS, DOT_COLS      tiles that fit the registers
 *   NAME(x)                the name of function x for this set
 */
#define PARTS (16 / LANES)
#define INLINE static inline __attribute__((always_inline)) TARGET

/* One tile of c = beta * c + alpha * a * b; the last of its vectors holds `last` columns. */
INLINE void
NAME(outer_tile)(const struct gemm *g, size_t i, size_t j, size_t rows, size_t vecs, size_t last)
{
	VEC acc[OUTER_ROWS][OUTER_VECS];
	const float *a = g->a + i * g->a_row, *b = g->b + j;
	float *c = g->c + i * g->c_row + j;
	size_t a_row = g->a_row, a_col = g->a_col, b_row = g->b_row;

	UNROLL for (size_t r = 0; r < rows; r++) UNROLL for (size_t v = 0; v < vecs; v++)
	    acc[r][v] = SPLAT(0);
	for (size_t p = g->k; p > 0; p--, a += a_col, b += b_row) {
		VEC x[OUTER_VECS];
		UNROLL for (size_t v = 0; v + 1 < vecs; v++) x[v] = LOAD(b + v * LANES);
		x[vecs - 1] = LOAD_PART(b + (vecs - 1) * LANES, last);
		UNROLL for (size_t r = 0; r < rows; r++)
		{
			VEC s = SPLAT(a[r * a_row]);
			UNROLL for (size_t v = 0; v < vecs; v++) acc[r][v] += s * x[v];
		}
	}
	VEC alpha = SPLAT(g->alpha), beta = SPLAT(g->beta);
	bool add = g->beta != 0;
	UNROLL for (size_t r = 0; r < rows; r++, c += g->c_row)
	{
		UNROLL for (size_t v = 0; v + 1 < vecs; v++)
		{
			VEC y = alpha * acc[r][v];
			if (add)
				y += beta * LOAD(c + v * LANES);
			STORE(c + v * LANES, y);
		}
		VEC y = alpha * acc[r][vecs - 1];
		if (add)
			y += beta * LOAD_PART(c + (vecs - 1) * LANES, last);
		STORE_PART(c + (vecs - 1) * LANES, y, last);
	}
}

#define OUTER(rows, vecs) \
	static TARGET void NAME(outer_##rows##_##vecs)( \
	    const struct gemm *g, size_t i, size_t j, size_t last) \
	{ \
		NAME(outer_tile)(g, i, j, rows, vecs, last); \
	}
#if OUTER_VECS == 4
#define OUTER_ROW(rows) OUTER(rows, 1) OUTER(rows, 2) OUTER(rows, 3) OUTER(rows, 4)
#define OUTER_NAMES(rows) \
	{ \
		NAME(outer_##rows##_1), NAME(outer_##rows##_2), NAME(outer_##rows##_3), \
		    NAME(outer_##rows##_4), \
	}
#else
#define OUTER_ROW(rows) OUTER(rows, 1) OUTER(rows, 2)
#define OUTER_NAMES(rows) \
	{ \
		NAME(outer_##rows##_1), NAME(outer_##rows##_2), \
	}
#endif
OUTER_ROW(1)
OUTER_ROW(2)
OUTER_ROW(3)
OUTER_ROW(4)
OUTER_ROW(5)
OUTER_ROW(6)
static void (*const NAME(outer_tiles)[OUTER_ROWS][OUTER_VECS])(
    const struct gemm *, size_t, size_t, size_t) = {
    OUTER_NAMES(1), OUTER_NAMES(2), OUTER_NAMES(3), OUTER_NAMES(4), OUTER_NAMES(5), OUTER_NAMES(6)};

static void
NAME(outer_at)(const struct gemm *g, size_t i, size_t rows, size_t j)
{
	size_t left = g->n - j;
	size_t vecs = left < OUTER_VECS * LANES ? (left + LANES - 1) / LANES : OUTER_VECS;
	size_t last = left < vecs * LANES ? left - (vecs - 1) * LANES : LANES;

	NAME(outer_tiles)[rows - 1][vecs - 1](g, i, j, last);
}

/* Whichever of the two operands is not walked again and again should be the large one. */
static void
NAME(outer)(const struct gemm *g)
{
	size_t strips = (g->m + OUTER_ROWS - 1) / OUTER_ROWS, step = OUTER_VECS * LANES;

	if (g->k * g->n > (1 << 17))
		for (size_t j = 0; j < g->n; j += step)
			for (size_t s = 0; s < strips; s++)
				NAME(outer_at)
	(g, g->m * s / strips, g->m * (s + 1) / strips - g->m * s / strips, j);
	else for (size_t s = 0; s < strips; s++) for (size_t j = 0; j < g->n; j += step)
	    NAME(outer_at)(g, g->m * s / strips, g->m * (s + 1) / strips - g->m * s / strips, j);
}

/* Adds the sixteen lanes of each of four sums: 8 + 8, 4 + 4, 2 + 2, 1 + 1. */
INLINE void
NAME(fold)(const VEC sum[PARTS], float *out)
{
	float t[16];
	UNROLL for (size_t q = 0; q < PARTS; q++) STORE(t + q * LANES, sum[q]);
	gemm_vec4 lo = VEC4(t) + VEC4(t + 8), hi = VEC4(t + 4) + VEC4(t + 12);
	gemm_vec4 x = lo + hi;
	*out = (x[0] + x[2]) + (x[1] + x[3]);
}

/* One tile of the dot products of `k` elements at p. */
INLINE void
NAME(dot_tile)(
    const struct gemm *g, size_t i, size_t j, size_t p, size_t k, size_t rows, size_t cols)
{
	VEC acc[DOT_ROWS][DOT_COLS][PARTS];
	const float *a = g->a + i * g->a_row + p, *b = g->b + j * g->b_row + p;
	size_t a_row = g->a_row, b_row = g->b_row, full = k / 16, part = k % 16;

	UNROLL for (size_t r = 0; r < rows; r++) UNROLL for (size_t s = 0; s < cols; s++)
	    UNROLL for (size_t q = 0; q < PARTS; q++) acc[r][s][q] = SPLAT(0);
	for (; full > 0; full--, a += 16, b += 16)
		UNROLL for (size_t q = 0; q < PARTS; q++)
		{
			VEC y[DOT_COLS];
			UNROLL for (size_t s = 0; s < cols; s++) y[s] =
			    LOAD(b + s * b_row + q * LANES);
			UNROLL for (size_t r = 0; r < rows; r++)
			{
				VEC x = LOAD(a + r * a_row + q * LANES);
				UNROLL for (size_t s = 0; s < cols; s++) acc[r][s][q] += x * y[s];
			}
		}
	UNROLL for (size_t q = 0; q < PARTS; q++)
	{
		size_t left = part > q * LANES ? part - q * LANES : 0;
		VEC y[DOT_COLS];
		if (left == 0)
			break;
		if (left > LANES)
			left = LANES;
		UNROLL for (size_t s = 0; s < cols; s++) y[s] =
		    LOAD_PART(b + s * b_row + q * LANES, left);
		UNROLL for (size_t r = 0; r < rows; r++)
		{
			VEC x = LOAD_PART(a + r * a_row + q * LANES, left);
			UNROLL for (size_t s = 0; s < cols; s++) acc[r][s][q] += x * y[s];
		}
	}
	bool add = g->beta != 0 || p > 0;
	float beta = p > 0 ? 1 : g->beta, alpha = g->alpha;
	float *c = g->c + i * g->c_row + j;
	UNROLL for (size_t r = 0; r < rows; r++) UNROLL for (size_t s = 0; s < cols; s++)
	{
		float x;
		NAME(fold)(acc[r][s], &x);
		float *o = c + r * g->c_row + s;
		*o = add ? beta * *o + alpha * x : alpha * x;
	}
}

#define DOT(rows, cols) \
	static TARGET void NAME(dot_##rows##_##cols)( \
	    const struct gemm *g, size_t i, size_t j, size_t p, size_t k) \
	{ \
		NAME(dot_tile)(g, i, j, p, k, rows, cols); \
	}
#if DOT_COLS == 4
#define DOT_ROW(rows) DOT(rows, 1) DOT(rows, 2) DOT(rows, 3) DOT(rows, 4)
#define DOT_NAMES(rows) \
	{ \
		NAME(dot_##rows##_1), NAME(dot_##rows##_2), NAME(dot_##rows##_3), \
		    NAME(dot_##rows##_4), \
	}
#else
#define DOT_ROW(rows) DOT(rows, 1) DOT(rows, 2) DOT(rows, 3)
#define DOT_NAMES(rows) \
	{ \
		NAME(dot_##rows##_1), NAME(dot_##rows##_2), NAME(dot_##rows##_3), \
	}
#endif
DOT_ROW(1)
#if DOT_ROWS >= 2
DOT_ROW(2)
#endif
#if DOT_ROWS >= 5
DOT_ROW(3)
DOT_ROW(4)
DOT_ROW(5)
#endif
static void (*const NAME(dot_tiles)[DOT_ROWS][DOT_COLS])(
    const struct gemm *, size_t, size_t, size_t, size_t) = {
    DOT_NAMES(1),
#if DOT_ROWS >= 2
    DOT_NAMES(2),
#endif
#if DOT_ROWS >= 5
    DOT_NAMES(3),
    DOT_NAMES(4),
    DOT_NAMES(5),
#endif
};

static void
NAME(dot_block)(const struct gemm *g, size_t p, size_t k)
{
	size_t strips = (g->m + DOT_ROWS - 1) / DOT_ROWS;

	for (size_t j = 0; j < g->n; j += DOT_COLS) {
		size_t cols = g->n - j < DOT_COLS ? g->n - j : DOT_COLS;
		for (size_t s = 0; s < strips; s++) {
			size_t i = g->m * s / strips, rows = g->m * (s + 1) / strips - i;
			NAME(dot_tiles)[rows - 1][cols - 1](g, i, j, p, k);
		}
	}
}

/* The blocks are of about equal length, whole vectors of sixteen. */
static void
NAME(dot)(const struct gemm *g)
{
	size_t blocks = (g->k + GEMM_DOT_BLOCK - 1) / GEMM_DOT_BLOCK;
	size_t step = blocks > 1 ? ((g->k + blocks - 1) / blocks + 15) / 16 * 16 : g->k;

	for (size_t p = 0; p == 0 || p < g->k; p += step) {
		NAME(dot_block)(g, p, g->k - p < step ? g->k - p : step);
		if (step == 0)
			break;
	}
}

/* At most eight vectors of a row at a time, which stay in registers while all spots pass. */
INLINE void
NAME(gather_strip)(float *to, const float *rows, const struct gemm_spots *s, size_t vecs)
{
	VEC acc[8];

	UNROLL for (size_t v = 0; v < vecs; v++) acc[v] = LOAD(to + v * LANES);
	for (size_t i = 0; i < s->count; i++) {
		const float *row = rows + s->at[i];
		VEC x = SPLAT(s->value[i]);
		UNROLL for (size_t v = 0; v < vecs; v++) acc[v] += x * LOAD(row + v * LANES);
	}
	UNROLL for (size_t v = 0; v < vecs; v++) STORE(to + v * LANES, acc[v]);
}

/* A constant number of vectors, so that the array becomes registers. */
#define GATHER(vecs) \
	case vecs: \
		NAME(gather_strip)(to + first * LANES, rows + first * LANES, s, vecs); \
		break;

static TARGET void
NAME(gather)(float *to, const float *rows, const struct gemm_spots *s, size_t width)
{
	size_t all = width / LANES, strips = (all + 7) / 8;

	for (size_t k = 0; k < strips; k++) {
		size_t first = all * k / strips, vecs = all * (k + 1) / strips - first;
		switch (vecs) {
			GATHER(1)
			GATHER(2)
			GATHER(3)
			GATHER(4)
			GATHER(5)
			GATHER(6)
			GATHER(7)
			GATHER(8)
		}
	}
}

/* Rows overlap: a spot must be done whole before the next. */
static TARGET void
NAME(scatter)(float *rows, const float *from, const struct gemm_spots *s, size_t width)
{
	for (size_t i = 0; i < s->count; i++) {
		float *row = rows + s->at[i];
		VEC x = SPLAT(s->value[i]);
		for (size_t j = 0; j < width; j += LANES)
			STORE(row + j, LOAD(row + j) + x * LOAD(from + j));
	}
}

#undef GATHER
#undef PARTS
#undef INLINE
