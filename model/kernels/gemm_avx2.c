#include "gemm_inside.h"
#if GEMM_X86
#include <immintrin.h>
#include <stdbool.h>

static const int mask_words[16] = {-1, -1, -1, -1, -1, -1, -1, -1};

#define TARGET __attribute__((target("avx2")))
#define VEC __m256
#define LANES 8
#define LOAD(p) _mm256_loadu_ps(p)
#define STORE(p, v) _mm256_storeu_ps(p, v)
#define MASK(r) _mm256_loadu_si256((const __m256i *)(const void *)(mask_words + 8 - (r)))
#define LOAD_PART(p, r) _mm256_maskload_ps(p, MASK(r))
#define STORE_PART(p, v, r) _mm256_maskstore_ps(p, MASK(r), v)
#define SPLAT(x) _mm256_set1_ps(x)
#define OUTER_ROWS 6
#define OUTER_VECS 2
#define DOT_ROWS 2
#define DOT_COLS 3
#define NAME(x) x##_avx2
#include "gemm_tile.inc"

const struct gemm_kernels gemm_avx2_kernels = {outer_avx2, dot_avx2, gather_avx2, scatter_avx2};
#endif
