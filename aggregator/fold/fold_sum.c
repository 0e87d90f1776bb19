#include "fold_sum.h"

#include "control.h"
#include "err.h"
#include "job.h"
#include "normalise.h"
#include "prng.h"

uint64_t
fold_sum_seed(uint64_t job_seed, uint64_t round)
{
	struct prng r;

	prng_seed2(&r, job_seed, round);
	return prng_u64(&r);
}

enum err
fold_sum_begin(struct fold_sum *s, struct why *why)
{
	s->deltas.elements = s->table->elements;
	const struct normalise_by by = {.normalisers = s->spec->normalise ? s->normalisers : NULL,
	    .most = s->spec->normalise_max,
	    .scales = s->scales};
	if (!by.normalisers && !by.scales)
		return rule_new(&s->rule, &s->spec->rule, &s->deltas, why);
	enum err e = normalise_new(&s->scaled, &s->deltas, &by, s->table, why);
	if (e)
		return e;
	const struct rule_input in = normalise_input(s->scaled);
	return rule_new(&s->rule, &s->spec->rule, &in, why);
}

unsigned
fold_sum_measures(const struct fold_sum *s)
{
	return rule_measures(s->rule);
}

enum err
fold_sum_measure(const struct fold_sum *s, unsigned strip)
{
	return rule_measure(s->rule, strip);
}

enum err
fold_sum_plan(const struct fold_sum *s)
{
	return rule_plan(s->rule);
}

enum err
fold_sum_run(const struct fold_sum *s, uint64_t first, size_t count, float *update)
{
	return rule_fold(s->rule, first, count, update);
}

enum err
fold_sum_changes(const struct fold_sum *s, uint64_t first, size_t count, double *sum)
{
	return control_sum(&s->changes, first, count, sum);
}

struct fold_sum_weight
fold_sum_weight(const struct fold_sum *s)
{
	struct fold_sum_weight w = {.normaliser = s->scaled ? normalise_mean(s->scaled) : 0};

	for (size_t i = 0; i < s->deltas.deltas; i++)
		w.examples += s->deltas.weights[i];
	return w;
}

void
fold_sum_end(struct fold_sum *s)
{
	rule_free(s->rule);
	normalise_free(s->scaled);
	s->rule = NULL;
	s->scaled = NULL;
}
