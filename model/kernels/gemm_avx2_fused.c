#include "gemm_inside.h"
#if GEMM_X86
#include <immintrin.h>
#include <stdbool.h>

#define VECTORS 256
#define FUSED 1
#include "gemm_tile.inc"

const struct gemm_kernels gemm_avx2_fused_kernels = {
    outer_avx2_fused, dot_avx2_fused, gather_avx2_fused, scatter_avx2_fused, dots_avx2_fused};
#endif
