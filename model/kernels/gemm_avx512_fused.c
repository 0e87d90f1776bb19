#include "gemm_inside.h"
#if GEMM_X86
#include <immintrin.h>
#include <stdbool.h>

#define VECTORS 512
#define FUSED 1
#include "gemm_tile.inc"

const struct gemm_kernels gemm_avx512_fused_kernels = {outer_avx512_fused, dot_avx512_fused,
    gather_avx512_fused, scatter_avx512_fused, dots_avx512_fused};
#endif
