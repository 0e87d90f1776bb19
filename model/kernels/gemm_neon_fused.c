#include "gemm_inside.h"
#if GEMM_NEON
#include <arm_neon.h>
#include <stdbool.h>
#include <string.h>

#define VECTORS 128
#define FUSED 1
#include "gemm_tile.inc"

const struct gemm_kernels gemm_neon_fused_kernels = GEMM_KERNELS;
#endif
