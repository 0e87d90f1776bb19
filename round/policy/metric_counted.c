
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "job.h"
#include "metric.h"
#include "training.h"

/* What a label weighs in the loss, at most. */
static double
largest_weight(const struct recipe *r)
{
	double most = 0;

	if (!r->builtin || !r->net.class_weights)
		return 1;
	for (size_t i = 0; i < r->net.class_weight_count; i++)
		most = fmax(most, (double)r->net.class_weights[i]);
	return most;
}

/* Steps that the job plans at most; infinite if only a clock or a program decides. */
static double
planned(const struct recipe *r)
{
	if (!r->builtin || r->local.unit == LOCAL_SECONDS)
		return INFINITY;
	return r->local.unit == LOCAL_SIZED ? (double)r->local.max_steps : r->local.amount;
}

/* Of work that was broken off the examples are a share of those that all of it would have taken, rounded down, and the last step of an epoch
 * may be a small one. */
static double
passed_most(const struct recipe *r, const struct metric_training *t)
{
	const struct local_spec *l = &r->local;
	double accumulate = l->accumulate > 1 ? l->accumulate : 1, most = planned(r);
	bool cut = t->partial && isfinite(most), batches = r->builtin && l->batch > 0;
	double examples = (double)t->examples + (t->partial ? 1 : 0),
	       steps = fmin((double)t->steps, most);

	if (r->builtin && l->unit == LOCAL_EPOCHS)
		return most * examples * (t->partial ? 2 : 1);
	/* No step takes an example twice, but by accumulating. */
	double whole = (cut ? most : steps) * examples * accumulate;
	return batches ? fmin(steps * l->batch * accumulate, whole) : whole;
}

double
metric_trained_most(const struct job_spec *spec, const struct metric_training *t)
{
	return passed_most(&spec->recipe, t) * recipe_labels_most(&spec->recipe);
}

double
metric_evaluated_most(const struct job_spec *spec, uint64_t examples)
{
	return (double)examples * recipe_labels_most(&spec->recipe);
}

static bool
is_told(const struct metric_device *d, enum metric_sum of)
{
	return d->says.told && (of == METRIC_SUM_LOSS || d->says.has_labels);
}

static double
told(const struct job_spec *spec, const struct metric_device *d, enum metric_sum of)
{
	return of == METRIC_SUM_LOSS
	    ? fmin(d->says.loss_count, d->most * largest_weight(&spec->recipe))
	    : fmin((double)d->says.labels, d->most);
}

void
metric_weigh(double *weights, const struct job_spec *spec, const struct metric_device *devices,
    size_t count, enum metric_sum of)
{
	double counted = 0, examples = 0;

	for (size_t i = 0; i < count; i++) {
		if (!is_told(&devices[i], of))
			continue;
		counted += told(spec, &devices[i], of);
		examples += devices[i].examples;
	}
	/* Never 0: who does not say would not count beside one that says next to nothing. */
	double each = counted > 0 ? fmax(counted / examples, DBL_MIN) : 1;
	for (size_t i = 0; i < count; i++)
		weights[i] = is_told(&devices[i], of) ? told(spec, &devices[i], of)
						      : each * devices[i].examples;
}

static double
mean(const double *values, const double *weights, size_t count)
{
	double sum = 0, all = 0;

	for (size_t i = 0; i < count; i++) {
		if (isnan(values[i]) || !(weights[i] > 0))
			continue;
		sum += weights[i] * values[i];
		all += weights[i];
	}
	return all > 0 ? sum / all : (double)NAN;
}

static double
accuracy_of(const struct metric_training *t)
{
	return t->says.has_labels ? messages_report_accuracy(&t->says) : t->accuracy;
}

/* A mean that a few hostile devices have less than half of, where somebody says what counted. */
static enum err
figure(double *out, const struct job_spec *spec, const struct metric_training *trainings,
    struct metric_device *devices, size_t count, enum metric_sum of)
{
	double *weights = (double *)(devices + count), *values = weights + count;
	bool told = false;
	enum err e = ERR_OK;

	for (size_t i = 0; i < count; i++) {
		const struct metric_training *t = &trainings[i];
		devices[i] = (struct metric_device){
		    (double)t->examples, metric_trained_most(spec, t), t->says};
		values[i] = of == METRIC_SUM_LOSS ? t->loss : accuracy_of(t);
		told |= t->says.told;
	}
	metric_weigh(weights, spec, devices, count, of);
	if (told && spec->aggregate.rule.hostile > 0)
		e = metric_cap(weights, count, spec->aggregate.rule.hostile);
	*out = mean(values, weights, count);
	return e;
}

enum err
metric_training_figures(struct metric_figures *out, const struct job_spec *spec,
    const struct metric_training *trainings, size_t count)
{
	/* Devices, then their weights, then their values. */
	struct metric_device *room = calloc(count + 1, sizeof(*room) + 2 * sizeof(double));

	*out = (struct metric_figures){NAN, NAN};
	enum err e = room ? ERR_OK : ERR_NOMEM;
	if (!e)
		e = figure(&out->loss, spec, trainings, room, count, METRIC_SUM_LOSS);
	if (!e)
		e = figure(&out->accuracy, spec, trainings, room, count, METRIC_SUM_LABELS);
	free(room);
	return e;
}
