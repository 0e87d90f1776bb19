#include "scoring.h"

#include <math.h>

#include "counts.h"
#include "loss.h"

/* How many outputs go before the label's. */
static size_t
rank_of(const float *row, size_t width, size_t label)
{
	size_t rank = 0;

	for (size_t j = 0; j < width; j++)
		rank += row[j] > row[label] || (j < label && row[j] == row[label]);
	return rank;
}

static size_t
bin_of(const float *row)
{
	double z = (double)row[1] - (double)row[0];
	double place = (1 + z / (1 + fabs(z))) * (COUNTS_BINS / 2);

	return place < COUNTS_BINS - 1 ? (size_t)place : COUNTS_BINS - 1;
}

static void
scoring_class(struct counts *to, const float *row, size_t label, size_t width)
{
	size_t taken = loss_argmax(row, width);

	if (to->classes) {
		to->classes[label].examples++;
		to->classes[taken].predicted++;
		to->classes[label].right += taken == label;
	}
	if (to->confusion)
		to->confusion[label * to->class_count + taken]++;
	size_t rank = to->wanted.top_count > 0 ? rank_of(row, width, label) : 0;
	for (size_t i = 0; i < to->wanted.top_count; i++)
		to->top[i] += rank < to->wanted.tops[i];
	if (to->bins) {
		struct counts_bin *b = &to->bins[bin_of(row)];
		b->positive += label == 1;
		b->negative += label != 1;
	}
}

void
scoring_classes(
    struct counts *to, const float *outputs, const int32_t *labels, size_t n, size_t width)
{
	to->examples += n;
	for (size_t i = 0; i < n; i++)
		scoring_class(to, outputs + i * width, (size_t)labels[i], width);
}

void
scoring_values(
    struct counts *to, const float *outputs, const float *targets, uint32_t n, size_t width)
{
	struct counts_regression *r = &to->regression;

	to->examples += n;
	if (!to->wanted.regression)
		return;
	r->values += (uint64_t)n * width;
	for (size_t i = 0; i < n * width; i++) {
		double y = (double)targets[i], e = (double)outputs[i] - y;
		r->absolute += fabs(e);
		r->squares += e * e;
		r->sum += y;
		r->sum_squares += y * y;
	}
}

void
scoring_batch(
    struct counts *to, const struct net *net, const float *outputs, const struct net_batch *b)
{
	size_t width = net_outputs(net);

	for (size_t i = 0; b->labels && i < b->n * net_labels(net); i++)
		if (net_label_counts(net, b->labels[i]))
			scoring_classes(to, outputs + i * width, b->labels + i, 1, width);
	/* Without labels and targets the input is what is to come out. */
	const float *targets = b->targets || b->labels ? b->targets : b->x;
	if (targets)
		scoring_values(to, outputs, targets, b->n, width);
}
