#ifndef DISTANCE_H
#define DISTANCE_H
#include <stddef.h>

#include "err.h"

/*
 * Squared Euclidean distances between all pairs of n vectors, a range of coordinates at a time. Differences are squared, not
 * products subtracted (|a|^2 + |b|^2 - 2ab, the form of a matrix product, loses all digits when two vectors are close):
 * each distance has a relative error of a few f32 roundings, however close or large the vectors. Registers hold blocks of
 * pairs; sums are in f32 over at most 64 squares and in f64 beyond, in an order that does not depend on the machine. Ranges cut at
 * multiples of DISTANCE_RUN and added in ascending order give the same bits as one range.
 */
#define DISTANCE_MAX 4096 /* vectors */
#define DISTANCE_RUN 1024 /* coordinates */

/* Adds to d2[i * n + j], for all i < j < n, the squared distance of rows i and j over `count` coordinates; other entries of d2
 * stay. rows: n rows, `stride` floats apart. A distance beyond f32's range becomes infinite. */
void distance_add(double *d2, const float *rows, size_t n, size_t stride, size_t count);
/* Copies the upper half of d2 (i < j) to the lower and zeros the diagonal. */
void distance_mirror(double *d2, size_t n);

#endif
