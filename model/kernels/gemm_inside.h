#ifndef GEMM_INSIDE_H
#define GEMM_INSIDE_H
#include <stdbool.h>

#include "gemm_choice.h"
#include "lanes.h"

/* Columns of a panel of a packed b: element (p, j) at b[j / 16 * 16 * k + p * 16 + j % 16]; the last panel is filled up with zeros. */
#define GEMM_PANEL 16
void gemm_pack_panels(float *to, const struct gemm *g, bool turned);

/* How the rows of b of an outer product lie. */
enum gemm_b { B_ROWS, B_PANELS, B_ANYWHERE };

/* Products cut into blocks, whose operands are packed on the stack. */
#define GEMM_BLOCK_COLUMNS 96
bool gemm_blocks_pay(const struct gemm *g);
/* Computes c = beta * c + alpha * (sums + a * b) with a packed b; rows of `sums` are GEMM_BLOCK_COLUMNS long; sums NULL: zeros. */
typedef void gemm_part(const struct gemm *g, const float *sums);
void gemm_blocks_outer(const struct gemm *g, gemm_part *part);
/* part: the lanes of one block of k; in a panel, element (p, j) of b at ((p % 16) * GEMM_LANE_STEPS(k) + p / 16) * 16 + j % 16. */
#define GEMM_LANE_STEPS(k) \
	(((k) + 15) / 16 | \
	    1) /* odd: lanes a power of two apart would share their place in the cache */
void gemm_blocks_dot(const struct gemm *g, gemm_part *part);

/*
 * Large products go to OpenBLAS (its own threads are off; it uses fused multiply-add). Our own kernels compute narrow products, products
 * with `own`, all of GEMM_EXACT, and those of GEMM_FAST whose class goes another way (gemm_choice.h).
 */
#define GEMM_BLAS_SIDE 24 /* the shortest side */
#define GEMM_BLAS_WORK ((size_t)1 << 19) /* m * n * k from which OpenBLAS is used */
#define GEMM_BLAS_LONG 512 /* k from which fast products are of a class of their own */

/* Several threads may compute stripes of rows: each stripe but the last has a multiple of GEMM_BLAS_ROWS rows and at least GEMM_BLAS_STRIPE
 * multiply-adds (less would take OpenBLAS's kernels for small products on some processors), so that every element lies in a tile of the
 * same shape. Columns are not cut, nor products of more than GEMM_BLAS_MOST rows: OpenBLAS cuts both into blocks of its own sizes. */
#define GEMM_BLAS_ROWS 48
#define GEMM_BLAS_STRIPE ((size_t)8000000)
#define GEMM_BLAS_MOST 32768
/* The most stripes for each thread: each stripe packs the whole of b again. */
#define GEMM_BLAS_EACH 2

/* Whether OpenBLAS can have the product, and is worth a call. */
bool gemm_blas_can(const struct gemm *g);
/* dot: b holds rows of length k (transposed). */
void gemm_blas(const struct gemm *g, bool dot);

static inline size_t
gemm_least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* The place of column j in a row of b with gemm.b_at. */
static inline size_t
gemm_column(const struct gemm *g, size_t j)
{
	j += g->b_first;
	return g->b_run ? j + j / g->b_run * g->b_skip : j;
}

/* The length of the blocks of gemm_dot's sums: about equal, a multiple of sixteen. */
static inline size_t
gemm_dot_step(size_t k)
{
	size_t blocks = (k + GEMM_DOT_BLOCK - 1) / GEMM_DOT_BLOCK;

	return blocks > 1 ? ((k + blocks - 1) / blocks + 15) / 16 * 16 : k;
}

/* The products of gemm.h for one instruction set. All tables that round each product give the same bits, and so do all that fuse. */
struct gemm_kernels {
	void (*outer)(const struct gemm *g);
	void (*dot)(const struct gemm *g);
	void (*gather)(float *to, const float *rows, const struct gemm_spots *s, size_t width);
	void (*scatter)(float *rows, const float *from, const struct gemm_spots *s, size_t width);
	size_t (*find)(
	    uint32_t *at, float *value, const float *from, const uint32_t *places, size_t n);
	void (*dots)(
	    float *lanes, const float *a, const float *b, const uint32_t *b_at, size_t k, size_t n);
};

/* Our kernels for this machine's widest vectors: with GEMM_FUSED those that fuse, if the CPU can. */
const struct gemm_kernels *gemm_kernels_of(enum gemm_way way);
/* gemm_outer or gemm_dot by `way`, which must be possible for the product's class (gemm_choice_can). */
void gemm_run(const struct gemm *g, bool dot, enum gemm_way way);

/* -DGEMM_X86=0 -DGEMM_NEON=0 builds the plain kernels alone: for checking that they agree with the others. */
#if !defined(GEMM_X86) && defined(__x86_64__)
#define GEMM_X86 1
#elif !defined(GEMM_X86)
#define GEMM_X86 0
#endif
#if !defined(GEMM_NEON) && defined(__aarch64__)
#define GEMM_NEON 1 /* all such CPUs have it */
#elif !defined(GEMM_NEON)
#define GEMM_NEON 0
#endif
#if GEMM_X86
extern const struct gemm_kernels gemm_avx512_kernels, gemm_avx512_fused_kernels; /* need AVX-512F */
extern const struct gemm_kernels gemm_avx2_kernels; /* needs AVX2 */
extern const struct gemm_kernels gemm_avx2_fused_kernels; /* needs AVX2 and FMA */
#endif
#if GEMM_NEON
extern const struct gemm_kernels gemm_neon_fused_kernels;
#endif
extern const struct gemm_kernels gemm_plain_kernels;

/* Inner loops over the rows and vectors of a tile must be unrolled whole, so that their arrays become registers. Not under the address
 * sanitizer: with a check of every access unrolled loops take a minute to compile, and the arrays stay in memory. */
#if defined(__clang__) && defined(__has_feature)
#define GEMM_WATCHED __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define GEMM_WATCHED 1
#else
#define GEMM_WATCHED 0
#endif
#if GEMM_WATCHED
#define UNROLL
#define TWICE
#elif defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#define TWICE _Pragma("clang loop unroll_count(2)")
#else
#define UNROLL _Pragma("GCC unroll 8")
#define TWICE _Pragma("GCC unroll 2")
#endif

#endif
