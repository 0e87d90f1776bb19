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

#define TARGET __attribute__((target("avx512f")))
#define VEC __m512
#define LANES 16
#define LOAD(p) _mm512_loadu_ps(p)
#define STORE(p, v) _mm512_storeu_ps(p, v)
#define MASK(r) ((__mmask16)((1u << (r)) - 1))
#define LOAD_PART(p, r) _mm512_maskz_loadu_ps(MASK(r), p)
#define STORE_PART(p, v, r) _mm512_mask_storeu_ps(p, MASK(r), v)
#define SPLAT(x) _mm512_set1_ps(x)
#define TILE_VECS 4
#define NAME(x) x##_avx512
#include "taps_tile.inc"

static const int words[16] = {-1, -1, -1, -1, -1, -1, -1, -1};

#define TARGET __attribute__((target("avx2")))
#define VEC __m256
#define LANES 8
#define LOAD(p) _mm256_loadu_ps(p)
#define STORE(p, v) _mm256_storeu_ps(p, v)
#define MASK(r) _mm256_loadu_si256((const __m256i *)(const void *)(words + 8 - (r)))
#define LOAD_PART(p, r) _mm256_maskload_ps(p, MASK(r))
#define STORE_PART(p, v, r) _mm256_maskstore_ps(p, MASK(r), v)
#define SPLAT(x) _mm256_set1_ps(x)
#define TILE_VECS 2
#define NAME(x) x##_avx2
#include "taps_tile.inc"
#endif

static inline gemm_vec4
load_part(const float *p, size_t r)
{
	float t[4] = {0};

	for (size_t i = 0; i < r; i++)
		t[i] = p[i];
	return (gemm_vec4){t[0], t[1], t[2], t[3]};
}

static inline void
store_part(float *p, gemm_vec4 v, size_t r)
{
	for (size_t i = 0; i < r; i++)
		p[i] = v[i];
}

#define TARGET
#define VEC gemm_vec4
#define LANES 4
#define LOAD(p) VEC4(p)
#define STORE(p, v) (*(gemm_vec4_unaligned *)(p) = (v))
#define LOAD_PART(p, r) load_part(p, r)
#define STORE_PART(p, v, r) store_part(p, v, r)
#define SPLAT(x) ((gemm_vec4){(x), (x), (x), (x)})
#define TILE_VECS 2
#define NAME(x) x##_plain
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
