#ifndef GEMM_BLAS_H
#define GEMM_BLAS_H
#include <stdbool.h>

#include "gemm.h"

/*
 * Large products go to OpenBLAS, whose own threads are off: it uses fused multiply-add. Skinny ones, those that say `own`, and all that must be exact, stay
 * with our own kernels; of fast ones, those of classes at which ours are quicker here (gemm_choice.h).
 */
#define GEMM_BLAS_SIDE 24 /* the shortest side */
#define GEMM_BLAS_WORK ((size_t)1 << 19) /* m * n * k from which OpenBLAS is used */
#define GEMM_BLAS_LONG 512 /* k from which fast products are of a class of their own */

/* Several threads may take stripes of rows: each a multiple of so many, but the last, and of so many multiply-adds, which leaves every
 * element in a tile of the same shape, above what some processors' OpenBLAS does by kernels for small products. Not cut are columns, and
 * more rows than all processors' OpenBLAS takes at once: of both it makes blocks by sizes of its own. */
#define GEMM_BLAS_ROWS 48
#define GEMM_BLAS_STRIPE ((size_t)8000000)
#define GEMM_BLAS_MOST 32768
/* Stripes for each thread at most, as each packs the whole of b again. */
#define GEMM_BLAS_EACH 2

/* Whether OpenBLAS can have the product, and is worth a call. */
bool gemm_blas_can(const struct gemm *g);
/* dot: b holds rows of length k (transposed). */
void gemm_blas(const struct gemm *g, bool dot);

#endif
