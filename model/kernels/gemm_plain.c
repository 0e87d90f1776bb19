#include <stdbool.h>
#include <string.h>

#include "gemm_inside.h"

#define VECTORS 128
#define FUSED 0
#include "gemm_tile.inc"

const struct gemm_kernels gemm_plain_kernels = GEMM_KERNELS;
