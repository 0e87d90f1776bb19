#include "gemm_inside.h"
#if GEMM_X86
#include <immintrin.h>
#include <stdbool.h>

#define TARGET __attribute__((target("avx512f")))
#define VEC __m512
#define LANES 16
#define LOAD(p) _mm512_loadu_ps(p)
#define STORE(p, v) _mm512_storeu_ps(p, v)
#define MASK(r) ((__mmask16)((1u << (r)) - 1))
#define LOAD_PART(p, r) _mm512_maskz_loadu_ps(MASK(r), p)
#define STORE_PART(p, v, r) _mm512_mask_storeu_ps(p, MASK(r), v)
#define SPLAT(x) _mm512_set1_ps(x)
#define OUTER_ROWS 6
#define OUTER_VECS 4
#define DOT_ROWS 5
#define DOT_COLS 4
#define NAME(x) x##_avx512
#include "gemm_tile.inc"

const struct gemm_kernels gemm_avx512_kernels = {
    outer_avx512, dot_avx512, gather_avx512, scatter_avx512};
#endif
