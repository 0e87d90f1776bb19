#include <stdbool.h>
#include <string.h>

#include "gemm_inside.h"

#define VECTORS 128
#define FUSED 0
#include "vectors.inc"
#define OUTER_ROWS 6
#define OUTER_VECS 2
#define DOT_ROWS 1
#define DOT_COLS 3
#define DOTS 3 /* sums in lanes at once: a row of most kernels */
#include "gemm_tile.inc"

const struct gemm_kernels gemm_plain_kernels = {
    outer_plain, dot_plain, gather_plain, scatter_plain, dots_plain};
