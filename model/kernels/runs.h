#ifndef RUNS_H
#define RUNS_H
#include <stdbool.h>
#include <stddef.h>

/* Operations on contiguous arrays, element by element. */

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

/* Prefetches an array that is read soon, at most its first RUNS_ASK floats: CPUs foresee reads in a row, but not a jump to another
 * example. */
#define RUNS_ASK ((size_t)512)
static inline void
runs_ask(const float *from, size_t n)
{
	for (size_t i = 0; i < n && i < RUNS_ASK; i += 16)
		__builtin_prefetch(from + i);
}

#endif
