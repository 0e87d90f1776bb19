#include "normalise.h"

#include <math.h>
#include <stdlib.h>

#include "cpu.h"

struct normalise {
	struct rule_input in;
	const struct tensor_table *table;
	bool averages; /* the table has averaged tensors */
	bool equal;
	double mean;
	float *factors;
};

CPU_CLONES static void
scale_tile(float *x, size_t n, float factor)
{
	for (size_t i = 0; i < n; i++)
		x[i] *= factor;
}

/* Those of the trained tensors only. */
static void
scale_trained(const struct normalise *n, uint64_t first, size_t count, float *out, float factor)
{
	struct tensor_piece p;

	for (size_t i = 0; tensor_table_piece(n->table, &i, first, count, &p);)
		if (p.tensor->role == TENSOR_TRAIN)
			scale_tile(out + (p.first - first), p.count, factor);
}

static enum err
read_scaled(void *context, size_t delta, uint64_t first, size_t count, float *out)
{
	const struct normalise *n = context;
	enum err e = n->in.read_tile(n->in.context, delta, first, count, out);

	if (e)
		return e;
	if (n->averages)
		scale_trained(n, first, count, out, n->factors[delta]);
	else
		scale_tile(out, count, n->factors[delta]);
	return ERR_OK;
}

static enum err
make_factors(struct normalise *n, const double *normalisers)
{
	double sum = 0, total = 0;

	n->equal = true;
	for (size_t i = 0; i < n->in.deltas; i++) {
		if (!(normalisers[i] > 0) || !isfinite(normalisers[i]))
			return ERR_INVALID;
		n->equal = n->equal && normalisers[i] == normalisers[0];
		sum += n->in.weights[i] * normalisers[i];
		total += n->in.weights[i];
	}
	n->mean = sum / total;
	for (size_t i = 0; i < n->in.deltas; i++)
		n->factors[i] = (float)(n->mean / normalisers[i]);
	return ERR_OK;
}

enum err
normalise_new(struct normalise **out, const struct rule_input *in, const double *normalisers,
    const struct tensor_table *table, struct why *why)
{
	struct normalise *n = calloc(1, sizeof(*n));

	if (n)
		*n = (struct normalise){
		    .in = *in, .table = table, .factors = calloc(in->deltas, sizeof(*n->factors))};
	if (!n || !n->factors) {
		normalise_free(n);
		return err_set(why, ERR_NOMEM, "no memory");
	}
	for (size_t i = 0; i < table->count; i++)
		n->averages |= table->items[i].in_delta && table->items[i].role == TENSOR_AVERAGE;
	if (make_factors(n, normalisers)) {
		normalise_free(n);
		return err_set(why, ERR_INVALID, "a delta has no normaliser");
	}
	*out = n;
	return ERR_OK;
}

void
normalise_free(struct normalise *n)
{
	if (!n)
		return;
	free(n->factors);
	free(n);
}

double
normalise_mean(const struct normalise *n)
{
	return n->mean;
}

struct rule_input
normalise_input(struct normalise *n)
{
	struct rule_input in = n->in;

	if (!n->equal) {
		in.read_tile = read_scaled;
		in.context = n;
	}
	return in;
}
