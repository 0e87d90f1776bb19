#include "norm_sums.h"

#include <math.h>

#include "cpu.h"
#include "lanes.h"

CPU_CLONES static void
add_values(float lanes[16], const float *x, size_t n)
{
	LANES_ADD(lanes, n, LANES_FOUR(x + i), x[i]);
}

CPU_CLONES static void
add_distances(float lanes[16], const float *x, size_t n, float mean)
{
	LANES_ADD(lanes, n, (LANES_FOUR(x + i) - mean) * (LANES_FOUR(x + i) - mean),
	    (x[i] - mean) * (x[i] - mean));
}

CPU_CLONES static void
add_products(float lanes[16], const float *a, const float *b, size_t n)
{
	LANES_ADD(lanes, n, LANES_FOUR(a + i) * LANES_FOUR(b + i), a[i] * b[i]);
}

void
norm_sums_add(struct norm_sums *s, const float *x, size_t n)
{
	add_values(s->lanes[0], x, n);
}

void
norm_sums_add_squares(struct norm_sums *s, const float *x, size_t n, float mean)
{
	add_distances(s->lanes[1], x, n, mean);
}

void
norm_sums_add_pair(struct norm_sums *s, const float *dy, const float *x, size_t n)
{
	add_values(s->lanes[0], dy, n);
	add_products(s->lanes[1], dy, x, n);
}

static float
folded(const float lanes[16])
{
	lanes16 v = LANES_AT(lanes);

	return lanes_fold(&v);
}

float
norm_sums_first(const struct norm_sums *s)
{
	return folded(s->lanes[0]);
}

float
norm_sums_second(const struct norm_sums *s)
{
	return folded(s->lanes[1]);
}

void
norm_sums_moments(const float *x, size_t n, float epsilon, float *mean, float *inverse)
{
	struct norm_sums s = {0};

	norm_sums_add(&s, x, n);
	*mean = norm_sums_first(&s) / (float)n;
	norm_sums_add_squares(&s, x, n, *mean);
	*inverse = 1.0f / sqrtf(norm_sums_second(&s) / (float)n + epsilon);
}

void
norm_sums_root(const float *x, size_t n, float epsilon, float *inverse)
{
	struct norm_sums s = {0};

	norm_sums_add_squares(&s, x, n, 0);
	*inverse = 1.0f / sqrtf(norm_sums_second(&s) / (float)n + epsilon);
}

void
norm_sums_pair(const float *dy, const float *x, size_t n, float *a, float *b)
{
	struct norm_sums s = {0};

	norm_sums_add_pair(&s, dy, x, n);
	*a = norm_sums_first(&s);
	*b = norm_sums_second(&s);
}

CPU_CLONES static void
line(float *y, const float *x, size_t n, float a, float b)
{
	for (size_t i = 0; i < n; i++)
		y[i] = x[i] * a + b;
}

void
norm_sums_line(float *y, const float *x, size_t n, float a, float b)
{
	line(y, x, n, a, b);
}

CPU_CLONES static void
plane(
    float *dx, const float *dy, const float *x, size_t n, const struct norm_sums_terms *t, bool add)
{
	float g = t->dy, slope = t->x, level = t->one;

	if (add)
		for (size_t i = 0; i < n; i++)
			dx[i] += dy[i] * g + (x[i] * slope + level);
	else
		for (size_t i = 0; i < n; i++)
			dx[i] = dy[i] * g + (x[i] * slope + level);
}

void
norm_sums_plane(
    float *dx, const float *dy, const float *x, size_t n, struct norm_sums_terms t, bool add)
{
	plane(dx, dy, x, n, &t, add);
}
