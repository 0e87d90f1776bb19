#include "gemm_inside.h"
#if GEMM_X86
#include <immintrin.h>
#include <stdbool.h>

#define VECTORS 256
#define FUSED 0
#include "gemm_tile.inc"

const struct gemm_kernels gemm_avx2_kernels = GEMM_KERNELS;
#endif
