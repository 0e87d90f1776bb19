#include "mean.h"

#include <math.h>
#include <stdlib.h>

#include "cpu.h"
#include "vec.h"

/* Deltas read before they are added: each element's running sum is then loaded and stored once per group
 * instead of once per delta. The additions stay in the order of the deltas. */
#define GROUP 4

/* Sums of one tile and the decoded tiles of one group, in one block. */
struct scratch {
	double sum[MEAN_TILE];
	float tile[GROUP][MEAN_TILE];
};

CPU_CLONES static void
add_group(double *restrict sum, const float (*restrict tile)[MEAN_TILE], const double *weight,
    size_t count)
{
	double w0 = weight[0], w1 = weight[1], w2 = weight[2], w3 = weight[3];

	for (size_t i = 0; i < count; i++) {
		double s = sum[i];
		s += w0 * (double)tile[0][i];
		s += w1 * (double)tile[1][i];
		s += w2 * (double)tile[2][i];
		s += w3 * (double)tile[3][i];
		sum[i] = s;
	}
}

CPU_CLONES static void
add_one(double *restrict sum, const float *restrict tile, double weight, size_t count)
{
	for (size_t i = 0; i < count; i++)
		sum[i] += weight * (double)tile[i];
}

CPU_CLONES static void
finish(float *restrict update, const double *restrict sum, double total, size_t count)
{
	for (size_t i = 0; i < count; i++)
		update[i] = (float)(sum[i] / total);
}

static enum err
fold_tile(const struct mean_input *in, double total, uint64_t first, size_t count, float *update,
    struct scratch *s)
{
	/* -0.0 is the neutral element of addition: from +0.0 a sum of negative zeros would lose its sign. */
	for (size_t i = 0; i < count; i++)
		s->sum[i] = -0.0;
	for (size_t d = 0; d < in->deltas;) {
		size_t group = in->deltas - d >= GROUP ? GROUP : 1;
		for (size_t g = 0; g < group; g++) {
			enum err e = in->read_tile(in->context, d + g, first, count, s->tile[g]);
			if (e)
				return e;
		}
		if (group == GROUP)
			add_group(s->sum, s->tile, in->weights + d, count);
		else
			add_one(s->sum, s->tile[0], in->weights[d], count);
		d += group;
	}
	finish(update, s->sum, total, count);
	return vec_all_finite(update, count) ? ERR_OK : ERR_NUMERIC;
}

/* The sum of the weights, or 0 if they break their contract. */
static double
total_weight(const struct mean_input *in)
{
	double total = 0;

	for (size_t d = 0; d < in->deltas; d++) {
		if (!(in->weights[d] >= 0))
			return 0;
		total += in->weights[d];
	}
	return isfinite(total) ? total : 0;
}

enum err
mean_fold(const struct mean_input *in, uint64_t first, size_t count, float *update)
{
	double total = total_weight(in);
	enum err e = ERR_OK;

	if (!(total > 0))
		return ERR_INVALID;
	struct scratch *s = malloc(sizeof(*s));
	if (!s)
		return ERR_NOMEM;
	while (count > 0 && !e) {
		size_t n = count < MEAN_TILE ? count : MEAN_TILE;
		e = fold_tile(in, total, first, n, update, s);
		first += n;
		update += n;
		count -= n;
	}
	free(s);
	return e;
}
