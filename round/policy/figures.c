#include "figures.h"

#include <math.h>
#include <stdlib.h>

static double
ratio(double a, double b)
{
	return b > 0 ? a / b : (double)NAN;
}

static double
or_zero(double x)
{
	return isnan(x) ? 0 : x;
}

static void
fill_classes(struct figures *f, const struct counts *c)
{
	struct figures_class sum = {0, 0, 0};
	double seen = 0;

	for (size_t i = 0; i < c->class_count; i++) {
		const struct counts_class *k = &c->classes[i];
		double right = (double)k->right, all = (double)k->examples,
		       taken = (double)k->predicted;
		f->classes[i] = (struct figures_class){
		    ratio(right, all), ratio(right, taken), ratio(2 * right, all + taken)};
		seen += all + taken > 0;
		sum.recall += or_zero(f->classes[i].recall);
		sum.precision += or_zero(f->classes[i].precision);
		sum.f1 += or_zero(f->classes[i].f1);
	}
	f->macro = (struct figures_class){
	    ratio(sum.recall, seen), ratio(sum.precision, seen), ratio(sum.f1, seen)};
}

/* Rounding can make the spread of equal values negative. */
static double
r2_of(const struct counts_regression *r)
{
	double spread = r->sum_squares - r->sum * (r->sum / (double)r->values);

	return spread > 0 ? 1 - r->squares / spread : (double)NAN;
}

static double
auc_of(const struct counts_bin *bins)
{
	double below = 0, positive = 0, pairs = 0;

	for (size_t i = 0; i < COUNTS_BINS; i++) {
		double p = (double)bins[i].positive, n = (double)bins[i].negative;
		pairs += p * (below + n / 2);
		below += n;
		positive += p;
	}
	return ratio(pairs, positive * below);
}

enum err
figures_of(struct figures *out, const struct counts *counts)
{
	const struct counts_regression *r = &counts->regression;

	*out = (struct figures){.counts = counts,
	    .macro = {NAN, NAN, NAN},
	    .mae = ratio(r->absolute, (double)r->values),
	    .r2 = r->values > 0 ? r2_of(r) : (double)NAN,
	    .auc = counts->bins ? auc_of(counts->bins) : (double)NAN};
	for (size_t i = 0; i < counts->wanted.top_count; i++)
		out->top[i] = ratio((double)counts->top[i], (double)counts->examples);
	if (!counts->classes)
		return ERR_OK;
	out->classes = calloc(counts->class_count, sizeof(*out->classes));
	if (!out->classes)
		return ERR_NOMEM;
	fill_classes(out, counts);
	return ERR_OK;
}

void
figures_deinit(struct figures *f)
{
	free(f->classes);
	f->classes = NULL;
}
