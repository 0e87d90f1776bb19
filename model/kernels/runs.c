#include "runs.h"

#include <string.h>

#include "cpu.h"
#include "lanes.h"

CPU_CLONES static void
add_run(float *to, const float *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] += from[i];
}

void
runs_add(float *to, const float *from, size_t n)
{
	add_run(to, from, n);
}

void
runs_give(float *to, const float *from, size_t n, bool add)
{
	if (add)
		add_run(to, from, n);
	else
		memcpy(to, from, n * sizeof(*to));
}

CPU_CLONES static void
scale_run(float *x, size_t n, float by)
{
	for (size_t i = 0; i < n; i++)
		x[i] *= by;
}

void
runs_scale(float *x, size_t n, float by)
{
	scale_run(x, n, by);
}

CPU_CLONES static void
multiply_run(float *to, const float *a, const float *b, size_t n, bool add)
{
	if (add)
		for (size_t i = 0; i < n; i++)
			to[i] += a[i] * b[i];
	else
		for (size_t i = 0; i < n; i++)
			to[i] = a[i] * b[i];
}

void
runs_product(float *to, const float *a, const float *b, size_t n, bool add)
{
	multiply_run(to, a, b, n, add);
}

CPU_CLONES static void
dot_run(float *sum, const float *a, const float *b, size_t n)
{
	float lanes[LANES_SIZE] = {0};

	LANES_ADD(lanes, n, LANES_FOUR(a + i) * LANES_FOUR(b + i), a[i] * b[i]);
	lanes16 all = LANES_AT(lanes);
	*sum = lanes_fold(&all);
}

float
runs_dot(const float *a, const float *b, size_t n)
{
	float sum;

	dot_run(&sum, a, b, n);
	return sum;
}

/* Blocks that lie in the nearest cache both ways. */
#define TILE ((size_t)16)

void
runs_turn(float *to, size_t to_row, const float *from, size_t from_row, size_t rows, size_t columns)
{
	for (size_t i = 0; i < rows; i += TILE)
		for (size_t j = 0; j < columns; j += TILE)
			for (size_t b = j; b < columns && b < j + TILE; b++)
				for (size_t a = i; a < rows && a < i + TILE; a++)
					to[b * to_row + a] = from[a * from_row + b];
}
