#ifndef NORMALISE_H
#define NORMALISE_H
#include "tensor.h"

struct rule_input;

/*
 * Deltas that are multiplied as they are read, each by a number of its own.
 *
 * FedNova (Wang et al. 2020): devices that did more local steps do not pull the model towards their own data. Each delta
 * x_i is read as x_i * t / a_i, a_i being the sum of its local step weights (the manifest's normaliser) and
 * t = sum w_i a_i / sum w_i, so that the mean is the weighted mean of directions times the mean amount of work.
 *
 * Each further step of a training moves a model less: a delta of few steps, multiplied by a large factor, would go farther than more steps
 * would have gone. So t / a_i is at most `most`, unless `most` is 0.
 *
 * t / a_i is formed in f64 and rounded once to f32, as is each product. If all a_i are equal the deltas are read as they are.
 * Tensors that are averaged, not trained, have no steps: they are read as they are, too.
 *
 * Scales s_i (the weights of late deltas) multiply whole deltas: x_i * (t / a_i * s_i), the factor formed in f64 and rounded
 * once; if all factors are 1 the deltas are read as they are.
 */
struct normalise;

struct normalise_by {
	const double *normalisers; /* one per delta, all above 0 (ERR_INVALID); NULL: none */
	double most; /* the largest factor t / a_i; 0: no bound */
	const double *scales; /* one per delta; NULL: none */
};
/* The table and what `in` and `by` point to must outlive the object. ERR_NOMEM. */
ERR_MUST_USE enum err normalise_new(struct normalise **out, const struct rule_input *in,
    const struct normalise_by *by, const struct tensor_table *table, struct why *why);
void normalise_free(struct normalise *n);
/* t, the normaliser of the deltas' mean; 0 without normalisers. */
double normalise_mean(const struct normalise *n);
/* The deltas of `in`, scaled when read. Lives as long as n. */
struct rule_input normalise_input(struct normalise *n);

#endif
