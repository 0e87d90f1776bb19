#ifndef VEC_H
#define VEC_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Vector helpers of the aggregation path; none calls libm beyond sqrt, all give the same bits everywhere. */

/* True if every element is finite. */
bool vec_all_finite(const float *x, size_t n);
/* Sum of squares in f64 in eight interleaved partial sums, which are added in order at the end. */
double vec_sum_squares(const float *x, size_t n);

#endif
