#include "normalise.h"

#include <math.h>
#include <stdlib.h>

#include "cpu.h"
#include "rule.h"
#include "tensor.h"

struct normalise {
	struct rule_input in;
	const struct tensor_table *table;
	bool averages; /* the table has averaged tensors */
	bool plain; /* all factors are 1 */
	double mean;
	float *trained, *averaged; /* factors, one per delta; of trained and of averaged tensors */
};

CPU_CLONES static void
scale_tile(float *x, size_t n, float factor)
{
	for (size_t i = 0; i < n; i++)
		x[i] *= factor;
}

/* Tensor by tensor. */
static void
scale_tensors(const struct normalise *n, size_t delta, uint64_t first, size_t count, float *out)
{
	struct tensor_piece p;

	for (size_t i = 0; tensor_table_piece(n->table, &i, first, count, &p);) {
		const bool trained = p.tensor->role == TENSOR_TRAIN;
		scale_tile(out + (p.first - first), p.count,
		    trained ? n->trained[delta] : n->averaged[delta]);
	}
}

static enum err
read_scaled(void *context, size_t delta, uint64_t first, size_t count, float *out)
{
	const struct normalise *n = context;
	enum err e = n->in.read_tile(n->in.context, delta, first, count, out);

	if (e)
		return e;
	if (n->averages)
		scale_tensors(n, delta, first, count, out);
	else
		scale_tile(out, count, n->trained[delta]);
	return ERR_OK;
}

/* Are all alike? Then no delta stands for more work than another. */
static enum err
compare_work(struct normalise *n, const double *normalisers, bool *equal)
{
	double sum = 0, total = 0;

	*equal = true;
	for (size_t i = 0; i < n->in.deltas; i++) {
		if (!(normalisers[i] > 0) || !isfinite(normalisers[i]))
			return ERR_INVALID;
		*equal = *equal && normalisers[i] == normalisers[0];
		sum += n->in.weights[i] * normalisers[i];
		total += n->in.weights[i];
	}
	n->mean = sum / total;
	return ERR_OK;
}

static enum err
make_factors(struct normalise *n, const struct normalise_by *by)
{
	bool equal = true;
	enum err e = by->normalisers ? compare_work(n, by->normalisers, &equal) : ERR_OK;

	n->plain = true;
	for (size_t i = 0; i < n->in.deltas && !e; i++) {
		double work = equal ? 1 : n->mean / by->normalisers[i];
		if (by->most > 0 && work > by->most)
			work = by->most;
		const double scale = by->scales ? by->scales[i] : 1;
		n->trained[i] = (float)(work * scale);
		n->averaged[i] = (float)scale;
		n->plain = n->plain && equal && scale == 1;
	}
	return e;
}

enum err
normalise_new(struct normalise **out, const struct rule_input *in, const struct normalise_by *by,
    const struct tensor_table *table, struct why *why)
{
	struct normalise *n = calloc(1, sizeof(*n));

	if (n)
		*n = (struct normalise){.in = *in,
		    .table = table,
		    .trained = calloc(in->deltas, sizeof(*n->trained)),
		    .averaged = calloc(in->deltas, sizeof(*n->averaged))};
	if (!n || !n->trained || !n->averaged) {
		normalise_free(n);
		return err_set(why, ERR_NOMEM, "no memory");
	}
	for (size_t i = 0; i < table->count; i++)
		n->averages |= table->items[i].in_delta && table->items[i].role == TENSOR_AVERAGE;
	if (make_factors(n, by)) {
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
	free(n->trained);
	free(n->averaged);
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

	if (!n->plain) {
		in.read_tile = read_scaled;
		in.context = n;
	}
	return in;
}
