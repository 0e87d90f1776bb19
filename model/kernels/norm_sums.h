#ifndef NORM_SUMS_H
#define NORM_SUMS_H
#include <stdbool.h>
#include <stddef.h>

/* The sums of norms over contiguous arrays, in sixteen lanes (lanes.h), and the linear maps that follow. */

/* The mean of x, and 1 / sqrt(variance + epsilon), the variance being the mean of squared distances from the mean. */
void norm_sums_moments(const float *x, size_t n, float epsilon, float *mean, float *inverse);
/* *inverse = 1 / sqrt(mean of squares of x + epsilon). */
void norm_sums_root(const float *x, size_t n, float epsilon, float *inverse);
/* y = x a + b. With a top other than 0 y is cut to [0, top], and in the backward pass dy counts as 0 where x a + b is outside. */
struct norm_sums_affine {
	float a, b, top;
};
void norm_sums_line(float *y, const float *x, size_t n, const struct norm_sums_affine *line);
/* *a = sum of dy, *b = sum of dy x. */
void norm_sums_pair(const float *dy, const float *x, size_t n, const struct norm_sums_affine *line,
    float *a, float *b);
struct norm_sums_terms {
	float dy, x, one;
	struct norm_sums_affine line;
};
/* dx = dy t.dy + (x t.x + t.one); dx may be dy. */
void norm_sums_plane(float *dx, const float *dy, const float *x, size_t n,
    const struct norm_sums_terms *t, bool add);

/* Sums over several arrays, added one after the other into the same lanes. */
struct norm_sums {
	float lanes[2][16];
};
void norm_sums_add(struct norm_sums *s, const float *x, size_t n);
/* Adds the squared distances of x from the mean. */
void norm_sums_add_squares(struct norm_sums *s, const float *x, size_t n, float mean);
void norm_sums_add_pair(struct norm_sums *s, const float *dy, const float *x, size_t n,
    const struct norm_sums_affine *line);
float norm_sums_first(const struct norm_sums *s);
float norm_sums_second(const struct norm_sums *s);

#endif
