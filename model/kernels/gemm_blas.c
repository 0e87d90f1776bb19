#include "gemm_inside.h"

#include <assert.h>
#include <cblas.h>
#include <limits.h>
#include <pthread.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void
use_one_thread(void)
{
	openblas_set_num_threads(1);
}

/* OpenBLAS's kernels for AVX (Sandy Bridge) leave the upper halves of vectors in use, and code without AVX is five times as slow until somebody
 * clears them. */
#if defined(__x86_64__)
__attribute__((target("avx"))) static void
clear_upper_halves(void)
{
	_mm256_zeroupper();
}

static void
leave_blas(void)
{
	if (__builtin_cpu_supports("avx"))
		clear_upper_halves();
}
#else
static void
leave_blas(void)
{
}
#endif

static bool
is_large(const struct gemm *g)
{
	if (g->m < GEMM_BLAS_SIDE || g->n < GEMM_BLAS_SIDE || g->k < GEMM_BLAS_SIDE)
		return false;
	/* Sides and strides of all but absurd matrices fit cblas's int; the product of two sides then fits size_t. */
	if (g->m > INT_MAX || g->n > INT_MAX || g->k > INT_MAX || g->a_row > INT_MAX ||
	    g->a_col > INT_MAX || g->b_row > INT_MAX || g->c_row > INT_MAX)
		return false;
	return g->m * g->n >= GEMM_BLAS_WORK / g->k;
}

bool
gemm_blas_can(const struct gemm *g)
{
	/* a is row by row or column by column; anything else has no name in BLAS. */
	return !g->own && !g->turned && !g->packed && !g->b_at && !g->chain && is_large(g) &&
	    (g->a_col == 1 || g->a_row == 1);
}

void
gemm_blas(const struct gemm *g, bool dot)
{
	bool across = g->a_col != 1;
	float beta = g->before ? 1 : g->beta;
	assert(!g->packed);
	for (size_t i = 0; g->before && i < g->m; i++)
		for (size_t j = 0; j < g->n; j++)
			g->c[i * g->c_row + j] = g->before[i];
	pthread_once(&once, use_one_thread);
	cblas_sgemm(CblasRowMajor, across ? CblasTrans : CblasNoTrans,
	    dot ? CblasTrans : CblasNoTrans, (int)g->m, (int)g->n, (int)g->k, g->alpha, g->a,
	    (int)(across ? g->a_col : g->a_row), g->b, (int)g->b_row, beta, g->c, (int)g->c_row);
	leave_blas();
}
