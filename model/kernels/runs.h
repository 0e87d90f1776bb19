#ifndef RUNS_H
#define RUNS_H
#include <stdbool.h>
#include <stddef.h>

/* Runs of memory, element by element. */

void runs_add(float *to, const float *from, size_t n);
/* to = from, or to += from: a gradient that is handed on unchanged. */
void runs_give(float *to, const float *from, size_t n, bool add);
void runs_scale(float *x, size_t n, float by);
/* to = a b, or to += a b */
void runs_product(float *to, const float *a, const float *b, size_t n, bool add);
/* Sum of products in sixteen lanes (lanes.h). */
float runs_dot(const float *a, const float *b, size_t n);
/* to[j * to_row + i] = from[i * from_row + j] for i < rows, j < columns. */
void runs_turn(
    float *to, size_t to_row, const float *from, size_t from_row, size_t rows, size_t columns);

#endif
