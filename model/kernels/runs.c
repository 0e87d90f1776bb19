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

#if defined(__clang__)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
typedef int picks __attribute__((vector_size(16)));
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (picks){__VA_ARGS__})
#endif
#define PUT(p, v) (*(lanes4_any *)(void *)(p) = (v))

/* Four rows of four. */
static void
turn_four(float *to, size_t to_row, const float *from, size_t from_row)
{
	lanes4 a = LANES_FOUR(from), b = LANES_FOUR(from + from_row);
	lanes4 c = LANES_FOUR(from + 2 * from_row), d = LANES_FOUR(from + 3 * from_row);
	lanes4 ab = SHUFFLE(a, b, 0, 4, 1, 5), cd = SHUFFLE(c, d, 0, 4, 1, 5);
	lanes4 AB = SHUFFLE(a, b, 2, 6, 3, 7), CD = SHUFFLE(c, d, 2, 6, 3, 7);

	PUT(to, SHUFFLE(ab, cd, 0, 1, 4, 5));
	PUT(to + to_row, SHUFFLE(ab, cd, 2, 3, 6, 7));
	PUT(to + 2 * to_row, SHUFFLE(AB, CD, 0, 1, 4, 5));
	PUT(to + 3 * to_row, SHUFFLE(AB, CD, 2, 3, 6, 7));
}

/* Blocks that lie in the nearest cache both ways. */
#define TILE ((size_t)16)

static void
turn_tile(float *to, size_t to_row, const float *from, size_t from_row, size_t rows, size_t columns)
{
	size_t deep = rows / 4 * 4, wide = columns / 4 * 4;

	for (size_t i = 0; i < deep; i += 4)
		for (size_t j = 0; j < wide; j += 4)
			turn_four(to + j * to_row + i, to_row, from + i * from_row + j, from_row);
	for (size_t j = 0; j < columns; j++)
		for (size_t i = j < wide ? deep : 0; i < rows; i++)
			to[j * to_row + i] = from[i * from_row + j];
}

void
runs_turn(float *to, size_t to_row, const float *from, size_t from_row, size_t rows, size_t columns)
{
	for (size_t i = 0; i < rows; i += TILE)
		for (size_t j = 0; j < columns; j += TILE)
			turn_tile(to + j * to_row + i, to_row, from + i * from_row + j, from_row,
			    rows - i < TILE ? rows - i : TILE,
			    columns - j < TILE ? columns - j : TILE);
}
