#ifndef FIGURES_H
#define FIGURES_H
#include "counts.h"

/*
 * Figures: the ratios that people decide by, from the counts of all devices together. The only place where they are defined;
 * docs/algorithms.md defines them in words, with sources. NaN where the divisor is 0. Pure.
 */

struct figures_class {
	double recall; /* right / examples of the class */
	double precision; /* right / predicted as the class */
	double f1; /* 2 right / (examples + predicted) */
};

struct figures {
	const struct counts *counts; /* the caller's: which figures were wanted, and the sums */
	struct figures_class *classes; /* counts->class_count; NULL if not wanted */
	/* Means over the classes that occur among the labels or the predictions; a ratio with divisor 0 counts as 0. */
	struct figures_class macro;
	double top[FIGURE_SET_TOPS_MAX]; /* share right by each of counts->wanted.tops */
	double mae; /* mean of |e| */
	/* 1 - sum of e^2 / sum of (y - mean of y)^2, over all outputs as one column. */
	double r2;
	/* The share of pairs of a positive and a negative in which the positive has the larger score; half of those in one bin. */
	double auc;
};

/* Computes the figures; `counts` must outlive *out. ERR_NOMEM. */
ERR_MUST_USE enum err figures_of(struct figures *out, const struct counts *counts);
void figures_deinit(struct figures *f);

#endif
