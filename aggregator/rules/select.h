#ifndef SELECT_H
#define SELECT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/*
 * What robust rules conclude from the distances between n vectors alone: which vectors count, and how much. d2 is a full n x n matrix of
 * squared distances (distance.h); the vectors themselves are not read. Weights are those of a weighted mean. Ties go to the lower index. f
 * is the number of vectors that may be hostile. All functions fail with ERR_NOMEM, and with ERR_INVALID if n is too small for f; those with
 * a `stop` fail with ERR_CLOSED once the stop is asked for.
 */
struct stop;

/* Krum (Blanchard et al. 2017): a vector's score is the sum of its n - f - 2 smallest squared distances to others. The `picks`
 * best get weight 1 (Krum picks 1, Multi-Krum up to n - f), the others 0. n >= 2f + 3. */
ERR_MUST_USE enum err select_krum(
    const double *d2, size_t n, size_t f, size_t picks, double *weights);
/* Bulyan's first half (El Mhamdi et al. 2018): picks n - 2f vectors, each time the best by Krum among those left. n >= 4f + 3. */
ERR_MUST_USE enum err select_bulyan(
    const double *d2, size_t n, size_t f, bool *picked, struct stop *stop);
/* The smoothed Weiszfeld iterations of RFA (Pillutla et al. 2022) for the geometric median with the weights alpha (sum 1), begun
 * at the vector with the smallest weighted sum of distances. In the first iteration no distance counts as less than the distance to the
 * nearest other vector, or the iteration would stay at its start. A weight below 1e-5 of the largest becomes 0: its vector is farther
 * by that factor, and the vector's distances are not exact enough to be of use. */
ERR_MUST_USE enum err select_median(const double *d2, size_t n, const double *alpha, double nu,
    unsigned iterations, double *weights, struct stop *stop);
/* Centered clipping (Karimireddy et al. 2021): v <- v + 1/(n-1) sum (x_i - v) min(1, tau / |x_i - v|). The last of the n vectors
 * is the first centre v. A share below 1e-5 counts as 0. */
ERR_MUST_USE enum err select_clip(const double *d2, size_t n, double tau, unsigned iterations,
    double *weights, struct stop *stop);
/* Nearest-neighbour mixing (Allouah et al. 2023): row i of the n x n mix is the mean of the n - f vectors nearest to i. n > f. */
ERR_MUST_USE enum err select_nearest(const double *d2, size_t n, size_t f, double *mix);
/* Bucketing (Karimireddy et al. 2022): each row of the mix is the mean of s vectors in an order drawn from seed, the last row of the rest.
 * Writes the number of rows, (n + s - 1) / s, to *rows. */
ERR_MUST_USE enum err select_buckets(size_t n, size_t s, uint64_t seed, double *mix, size_t *rows);
/* Squared distances between mixed vectors; the rows of mix (rows x n) sum to 1. out: rows x rows. */
ERR_MUST_USE enum err select_mixed(
    const double *d2, size_t n, const double *mix, size_t rows, double *out, struct stop *stop);

#endif
