#include "taps.h"

#include <string.h>

#include "gemm_inside.h"

#define TAPS_ROWS 6
/* Sums in lanes at once: a row of most kernels. */
#define DOTS 3
/* Products of a tile before the next tile begins: a strip of b stays in the nearest cache. */
#define BLOCK ((size_t)256)

/* Floats that stay in the second cache, and columns of a block of b that do. */
#define CACHED ((size_t)1 << 15)
#define WIDE_STRIP 128

/* A tile's share: rows from i, columns [j, j + columns), k products from the first. */
struct taps_part {
	size_t i, j, columns, first, k;
	enum taps_sum sum;
};

struct taps_set {
	size_t lanes, vecs;
	void (*tiles[TAPS_ROWS][4])(const struct taps *t, const struct taps_part *q);
	void (*dots)(
	    float *lanes, const float *a, const float *b, const uint32_t *b_at, size_t k, size_t n);
};

#if GEMM_X86
#include <immintrin.h>

#define VECTORS 512
#include "vectors.inc"
#define TILE_VECS 4
#include "taps_tile.inc"

#define VECTORS 256
#include "vectors.inc"
#define TILE_VECS 2
#include "taps_tile.inc"
#endif

#define VECTORS 128
#include "vectors.inc"
#define TILE_VECS 2
#include "taps_tile.inc"

static const struct taps_set *
kernels(void)
{
#if GEMM_X86
	if (__builtin_cpu_supports("avx512f"))
		return &taps_set_avx512;
	if (__builtin_cpu_supports("avx2"))
		return &taps_set_avx2;
#endif
	return &taps_set_plain;
}

/* Columns [from, to) of all rows. */
static void
columns(
    const struct taps *t, const struct taps_set *set, struct taps_part q, size_t from, size_t to)
{
	size_t strips = (t->m + TAPS_ROWS - 1) / TAPS_ROWS, step = set->lanes * set->vecs;

	for (size_t s = 0; s < strips; s++) {
		q.i = t->m * s / strips;
		size_t rows = t->m * (s + 1) / strips - q.i;
		for (q.j = from; q.j < to; q.j += step) {
			q.columns = to - q.j < step ? to - q.j : step;
			set->tiles[rows - 1][(q.columns - 1) / set->lanes](t, &q);
		}
	}
}

/* One strip of b after the other if all of a stays in the second cache meanwhile, else some at once. */
static void
block(const struct taps *t, const struct taps_set *set, struct taps_part q)
{
	size_t step = set->lanes * set->vecs;
	size_t some = t->m * q.k > CACHED && step < WIDE_STRIP ? WIDE_STRIP : step;

	for (size_t j = 0; j < t->n; j += some)
		columns(t, set, q, j, t->n - j < some ? t->n : j + some);
}

/* A sum that is added to c must be whole. */
void
taps_sum(const struct taps *t)
{
	const struct taps_set *set = kernels();
	size_t most = t->sum == TAPS_ADD ? t->k : BLOCK;

	for (size_t p = 0; p == 0 || p < t->k; p += most) {
		block(t, set,
		    (struct taps_part){.first = p,
			.k = t->k - p < most ? t->k - p : most,
			.sum = p > 0 ? TAPS_CHAIN : t->sum});
		if (most == 0)
			break;
	}
}

void
taps_dots(float *lanes, const float *a, const float *b, const uint32_t *b_at, size_t k, size_t n)
{
	size_t whole = n - n % 16;
	float last[16] = {0};

	kernels()->dots(lanes, a, b, b_at, k, whole);
	if (whole == n)
		return;
	memcpy(last, a + whole, (n - whole) * sizeof(float));
	kernels()->dots(lanes, last, b + whole, b_at, k, 16);
}
