#include "gemm_blas.h"
#include "gemm_inside.h"

static const struct gemm_kernels *
kernels(void)
{
#if GEMM_X86
	if (__builtin_cpu_supports("avx512f"))
		return &gemm_avx512_kernels;
	if (__builtin_cpu_supports("avx2"))
		return &gemm_avx2_kernels;
#endif
	return &gemm_plain_kernels;
}

void
gemm_outer(const struct gemm *g)
{
	if (g->exact || !gemm_blas(g, false))
		kernels()->outer(g);
}

void
gemm_dot(const struct gemm *g)
{
	if (g->exact || !gemm_blas(g, true))
		kernels()->dot(g);
}

void
gemm_gather(float *to, const float *rows, const struct gemm_spots *s, size_t width)
{
	kernels()->gather(to, rows, s, width);
}

void
gemm_scatter(float *rows, const float *from, const struct gemm_spots *s, size_t width)
{
	kernels()->scatter(rows, from, s, width);
}
