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

typedef int mask4 __attribute__((vector_size(16)));

/* Where dy counts: of one element, or of a vector. Nothing reaches a top that is no number. */
#define INSIDE(x) (((x)*a + b > 0) & (((x)*a + b >= top) == 0))
#define TOP_OF(line) ((line)->top < INFINITY ? (line)->top : NAN)
#define INSIDE_FOUR(dy, x) ((lanes4)((mask4)(dy)&INSIDE(x)))

/* Of elements i to i + 3, which goes on to the next. */
#define ADD_FOUR(sum, product) \
	do { \
		g = INSIDE_FOUR(LANES_FOUR(dy + i), LANES_FOUR(x + i)); \
		(sum) += g; \
		(product) += g * LANES_FOUR(x + i); \
		i += 4; \
	} while (0)

/* Fewer than four, zeros behind them. */
static inline lanes4
last_of(const float *p, size_t n)
{
	return (lanes4){p[0], n > 1 ? p[1] : 0, n > 2 ? p[2] : 0, 0};
}

/* Both sums at once. */
CPU_CLONES static void
add_inside(struct norm_sums *s, const float *dy, const float *x, size_t n,
    const struct norm_sums_affine *line)
{
	lanes4_any *sums = (lanes4_any *)(void *)s->lanes[0];
	lanes4_any *products = (lanes4_any *)(void *)s->lanes[1];
	float a = line->a, b = line->b, top = TOP_OF(line);
	size_t i = 0, k = 0;
	lanes4 g;

	if (n >= 16) {
		lanes4 s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
		lanes4 p0 = products[0], p1 = products[1], p2 = products[2], p3 = products[3];
		while (i + 16 <= n) {
			ADD_FOUR(s0, p0);
			ADD_FOUR(s1, p1);
			ADD_FOUR(s2, p2);
			ADD_FOUR(s3, p3);
		}
		sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3;
		products[0] = p0, products[1] = p1, products[2] = p2, products[3] = p3;
	}
	for (; i + 4 <= n; k++)
		ADD_FOUR(sums[k], products[k]);
	if (i < n) {
		lanes4 last = last_of(x + i, n - i);
		g = INSIDE_FOUR(last_of(dy + i, n - i), last);
		sums[k] += g;
		products[k] += g * last;
	}
}

void
norm_sums_add_pair(struct norm_sums *s, const float *dy, const float *x, size_t n,
    const struct norm_sums_affine *line)
{
	if (line->top > 0) {
		add_inside(s, dy, x, n, line);
		return;
	}
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
norm_sums_pair(const float *dy, const float *x, size_t n, const struct norm_sums_affine *line,
    float *a, float *b)
{
	struct norm_sums s = {0};

	norm_sums_add_pair(&s, dy, x, n, line);
	*a = norm_sums_first(&s);
	*b = norm_sums_second(&s);
}

CPU_CLONES static void
line(float *y, const float *x, size_t n, float a, float b)
{
	for (size_t i = 0; i < n; i++)
		y[i] = x[i] * a + b;
}

CPU_CLONES static void
cut_line(float *y, const float *x, size_t n, float a, float b, float top)
{
	for (size_t i = 0; i < n; i++) {
		float at = x[i] * a + b, up = at < 0 ? 0 : at;
		y[i] = up > top ? top : up;
	}
}

void
norm_sums_line(float *y, const float *x, size_t n, const struct norm_sums_affine *to)
{
	if (to->top > 0)
		cut_line(y, x, n, to->a, to->b, to->top);
	else
		line(y, x, n, to->a, to->b);
}

CPU_CLONES static void
plane(
    float *dx, const float *dy, const float *x, size_t n, const struct norm_sums_terms *t, bool add)
{
	float g = t->dy, slope = t->x, level = t->one;

	if (add) {
		LANES_FREE
		for (size_t i = 0; i < n; i++)
			dx[i] += dy[i] * g + (x[i] * slope + level);
	} else {
		LANES_FREE
		for (size_t i = 0; i < n; i++)
			dx[i] = dy[i] * g + (x[i] * slope + level);
	}
}

CPU_CLONES static void
cut_plane(
    float *dx, const float *dy, const float *x, size_t n, const struct norm_sums_terms *t, bool add)
{
	float g = t->dy, slope = t->x, level = t->one;
	float a = t->line.a, b = t->line.b, top = TOP_OF(&t->line);

	if (add) {
		LANES_FREE
		for (size_t i = 0; i < n; i++)
			dx[i] += (INSIDE(x[i]) ? dy[i] : 0) * g + (x[i] * slope + level);
	} else {
		LANES_FREE
		for (size_t i = 0; i < n; i++)
			dx[i] = (INSIDE(x[i]) ? dy[i] : 0) * g + (x[i] * slope + level);
	}
}

void
norm_sums_plane(
    float *dx, const float *dy, const float *x, size_t n, const struct norm_sums_terms *t, bool add)
{
	(t->line.top > 0 ? cut_plane : plane)(dx, dy, x, n, t, add);
}
