#include "distance.h"

#include <string.h>

#include "cpu.h"

#define BLOCK 4 /* pairs of BLOCK x BLOCK rows at a time */
#define LANES 16

/* Lowered to what the machine has; the lanes, and so the bits, stay the same. */
typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4)));

struct rows {
	const float *at[BLOCK];
};

/* The sums of the squared differences of BLOCK x BLOCK pairs over count coordinates, a multiple of LANES. */
CPU_CLONES static void
block_sums(const struct rows *a, const struct rows *b, size_t count, float out[BLOCK][BLOCK][LANES])
{
	lanes sum[BLOCK][BLOCK];

	for (size_t i = 0; i < BLOCK; i++)
		for (size_t j = 0; j < BLOCK; j++)
			sum[i][j] = (lanes){0};
	for (size_t k = 0; k < count; k += LANES) {
		lanes x[BLOCK];
		for (size_t i = 0; i < BLOCK; i++)
			x[i] = *(const lanes *)(const void *)(a->at[i] + k);
		for (size_t j = 0; j < BLOCK; j++) {
			lanes y = *(const lanes *)(const void *)(b->at[j] + k);
			for (size_t i = 0; i < BLOCK; i++) {
				lanes d = x[i] - y;
				sum[i][j] += d * d;
			}
		}
	}
	for (size_t i = 0; i < BLOCK; i++)
		for (size_t j = 0; j < BLOCK; j++)
			*(lanes *)(void *)out[i][j] = sum[i][j];
}

/* The same of the pairs i < j of one block with itself; the others' sums are zero. */
CPU_CLONES static void
own_sums(const struct rows *a, size_t count, float out[BLOCK][BLOCK][LANES])
{
	lanes sum[BLOCK][BLOCK];

	for (size_t i = 0; i < BLOCK; i++)
		for (size_t j = 0; j < BLOCK; j++)
			sum[i][j] = (lanes){0};
	for (size_t k = 0; k < count; k += LANES) {
		lanes x[BLOCK];
		for (size_t j = 0; j < BLOCK; j++) {
			x[j] = *(const lanes *)(const void *)(a->at[j] + k);
			for (size_t i = 0; i < j; i++) {
				lanes d = x[i] - x[j];
				sum[i][j] += d * d;
			}
		}
	}
	for (size_t i = 0; i < BLOCK; i++)
		for (size_t j = 0; j < BLOCK; j++)
			*(lanes *)(void *)out[i][j] = sum[i][j];
}

/* Adds the lanes of each pair up, in ascending order. */
CPU_CLONES static void
add_lanes(double *restrict total, const float *restrict sums)
{
	for (size_t p = 0; p < BLOCK * BLOCK; p++)
		total[p] = 0;
	for (size_t k = 0; k < LANES; k++)
		for (size_t p = 0; p < BLOCK * BLOCK; p++)
			total[p] += (double)sums[p * LANES + k];
}

/* Coordinates past the last whole register, one by one. */
static double
rest(const float *a, const float *b, size_t from, size_t count)
{
	double sum = 0;

	for (size_t k = from; k < count; k++) {
		float d = a[k] - b[k];
		sum += (double)(d * d);
	}
	return sum;
}

/* Pairs of the rows i.. and j.., BLOCK each; rows past the last are the last one again and give nothing. */
static void
add_block(double *d2, const float *rows, size_t n, size_t stride, size_t i, size_t j, size_t count)
{
	float sums[BLOCK][BLOCK][LANES];
	double total[BLOCK][BLOCK];
	struct rows a, b;

	for (size_t k = 0; k < BLOCK; k++) {
		a.at[k] = rows + (i + k < n ? i + k : n - 1) * stride;
		b.at[k] = rows + (j + k < n ? j + k : n - 1) * stride;
	}
	size_t whole = count / LANES * LANES;
	if (i == j)
		own_sums(&a, whole, sums);
	else
		block_sums(&a, &b, whole, sums);
	add_lanes(total[0], sums[0][0]);
	for (size_t x = 0; x < BLOCK; x++)
		for (size_t y = 0; y < BLOCK; y++)
			if (i + x < j + y && j + y < n)
				d2[(i + x) * n + j + y] +=
				    total[x][y] + rest(a.at[x], b.at[y], whole, count);
}

void
distance_add(double *d2, const float *rows, size_t n, size_t stride, size_t count)
{
	for (size_t at = 0; at < count; at += DISTANCE_RUN) {
		size_t run = count - at < DISTANCE_RUN ? count - at : DISTANCE_RUN;
		for (size_t i = 0; i < n; i += BLOCK)
			for (size_t j = i; j < n; j += BLOCK)
				add_block(d2, rows + at, n, stride, i, j, run);
	}
}

void
distance_mirror(double *d2, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		d2[i * n + i] = 0;
		for (size_t j = i + 1; j < n; j++)
			d2[j * n + i] = d2[i * n + j];
	}
}
