#include "gemm_inside.h"
#if GEMM_X86
#include <immintrin.h>
#include <stdbool.h>

#define VECTORS 512
#define FUSED 0
#include "gemm_tile.inc"

const struct gemm_kernels gemm_avx512_kernels = {
    outer_avx512, dot_avx512, gather_avx512, scatter_avx512, dots_avx512};
#endif
