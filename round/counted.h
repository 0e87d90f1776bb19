#ifndef COUNTED_H
#define COUNTED_H
#include <stddef.h>

#include "job.h"
#include "messages.h"

/*
 * The training figures of a round, and what a device's figures weigh in means over devices: as much as counted in them, so that the mean
 * is a sum over what counted divided by what counted. Who does not say what counted (an old agent, a program) weighs as much as the others do
 * for each of its examples, and its examples where nobody says. What devices say is bounded by what the job lets so many examples count for.
 * Where `hostile` of them may lie, no weight counts for more than metric_cap allows, once somebody says. Pure.
 */

/* What one device says of one of its figures. */
struct counted_device {
	double examples; /* of its manifest, above 0 */
	double
	    most; /* labels that these can count for, at most: counted_trained_most or counted_evaluated_most */
	struct report_counted says;
};

/* What a manifest and its report say of a training. */
struct counted_training {
	uint64_t examples, steps;
	bool partial;
	double loss, accuracy; /* accuracy NaN if none */
	struct report_counted says;
};

/* NaN where nothing counted. */
struct counted_figures {
	double loss, accuracy;
};

/* The most labels, or examples without labels, that so much work can have counted, each as often as a step took it. */
double counted_trained_most(const struct job_spec *spec, const struct counted_training *t);
/* And an evaluation of so many examples. */
double counted_evaluated_most(const struct job_spec *spec, uint64_t examples);

enum counted_of { COUNTED_LOSS, COUNTED_LABELS };
/* Fills weights[count]; 0 for a device in whose figure nothing counted. */
void counted_weigh(double *weights, const struct job_spec *spec,
    const struct counted_device *devices, size_t count, enum counted_of of);

/* ERR_NOMEM. */
ERR_MUST_USE enum err counted_training_figures(struct counted_figures *out,
    const struct job_spec *spec, const struct counted_training *trainings, size_t count);

#endif
