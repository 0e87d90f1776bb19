#ifndef NORM_SUMS_H
#define NORM_SUMS_H
#include <stdbool.h>
#include <stddef.h>

/* What norms sum over runs of memory, in sixteen lanes (lanes.h), and write over them. */

/* Mean, and 1 / sqrt(mean of squared distances from it + epsilon). */
void norm_sums_moments(const float *x, size_t n, float epsilon, float *mean, float *inverse);
/* 1 / sqrt(mean of squares + epsilon). */
void norm_sums_root(const float *x, size_t n, float epsilon, float *inverse);
/* Sums of dy and of dy x. */
void norm_sums_pair(const float *dy, const float *x, size_t n, float *a, float *b);
/* y = x a + b */
void norm_sums_line(float *y, const float *x, size_t n, float a, float b);
struct norm_sums_terms {
	float dy, x, one;
};
/* dx = dy t.dy + (x t.x + t.one) */
void norm_sums_plane(
    float *dx, const float *dy, const float *x, size_t n, struct norm_sums_terms t, bool add);

/* Sums over several runs, one after the other into the same lanes. */
struct norm_sums {
	float lanes[2][16];
};
void norm_sums_add(struct norm_sums *s, const float *x, size_t n);
/* Of squared distances from the mean. */
void norm_sums_add_squares(struct norm_sums *s, const float *x, size_t n, float mean);
void norm_sums_add_pair(struct norm_sums *s, const float *dy, const float *x, size_t n);
float norm_sums_first(const struct norm_sums *s);
float norm_sums_second(const struct norm_sums *s);

#endif
