#include <stdbool.h>
#include <string.h>

#include "gemm_inside.h"

static inline gemm_vec4
load_part(const float *p, size_t r)
{
	float t[4] = {0};

	for (size_t i = 0; i < r; i++)
		t[i] = p[i];
	return (gemm_vec4){t[0], t[1], t[2], t[3]};
}

static inline void
store_part(float *p, gemm_vec4 v, size_t r)
{
	for (size_t i = 0; i < r; i++)
		p[i] = v[i];
}

#define TARGET
#define VEC gemm_vec4
#define LANES 4
#define LOAD(p) VEC4(p)
#define STORE(p, v) (*(gemm_vec4_unaligned *)(p) = (v))
#define LOAD_PART(p, r) ((r) == LANES ? LOAD(p) : load_part(p, r))
#define STORE_PART(p, v, r) store_part(p, v, r)
#define SPLAT(x) ((gemm_vec4){(x), (x), (x), (x)})
#define OUTER_ROWS 6
#define OUTER_VECS 2
#define DOT_ROWS 1
#define DOT_COLS 3
#define NAME(x) x##_plain
#include "gemm_tile.inc"

const struct gemm_kernels gemm_plain_kernels = {
    outer_plain, dot_plain, gather_plain, scatter_plain};
