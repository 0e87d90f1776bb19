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

CPU_CLONES static void
turn_tile(float *to, size_t to_row, const float *from, size_t from_row, size_t rows, size_t columns)
{
	size_t whole = rows - rows % 4;

	for (size_t j = 0; j < columns; j++, to += to_row, from++) {
		for (size_t i = 0; i < whole; i += 4) {
			const float *f = from + i * from_row;
			*(lanes4_any *)(void *)(to + i) =
			    (lanes4){f[0], f[from_row], f[2 * from_row], f[3 * from_row]};
		}
		for (size_t i = whole; i < rows; i++)
			to[i] = from[i * from_row];
	}
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
