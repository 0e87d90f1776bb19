#ifndef GEMM_BLAS_H
#define GEMM_BLAS_H
#include <stdbool.h>

#include "gemm.h"

/*
 * Large products go to OpenBLAS, on one thread: it uses fused multiply-add. Skinny ones, and all that must be exact, stay with our own
 * kernels; of fast ones, also outer products whose sums are not long, at which ours that fuse reach 95 % of it and more.
 */
#define GEMM_BLAS_SIDE 24 /* the shortest side */
#define GEMM_BLAS_WORK ((size_t)1 << 19) /* m * n * k from which OpenBLAS is used */
#define GEMM_BLAS_LONG 512 /* k from which OpenBLAS has fast outer products */

/* Whether OpenBLAS has the product. */
bool gemm_blas_takes(const struct gemm *g, bool dot);
/* Carries it out and returns true if so. dot: b holds rows of length k (transposed). */
bool gemm_blas(const struct gemm *g, bool dot);

#endif
