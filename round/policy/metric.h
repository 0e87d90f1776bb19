#ifndef METRIC_H
#define METRIC_H
#include <stddef.h>

#include "messages.h"

struct job_spec;

/*
 * The metric of a round's base from what its devices report of it (evaluate.by: devices). Where no device may be hostile it is
 * their mean, weighted by what counted in them (below). Where `hostile` of them may be, it is their median, which lies between figures of honest devices
 * whatever the others say: it takes more than 2 x hostile reports, and no weight counts for more than the median of the weights, nor
 * for so much that `hostile` devices together had half. Pure.
 */

/* A loss further from zero is no number. */
#define METRIC_LOSS_MAX 1e30

/* What one device measured; NaN: it does not say, or found no number. One in whose figures nothing counted is left out. */
struct metric_report {
	double weight; /* examples, above 0 */
	double loss, accuracy;
	double most; /* labels that so many examples can count for (metric_evaluated_most) */
	struct report_counted says; /* what they are means of, as far as the device says */
};

struct metric {
	bool known; /* false: too few reports for a metric */
	/* NaN if for more than half of the devices (with `hostile`: of the weight) it is no number. What fewer find to be none is
	 * left out of the mean. */
	double loss;
	/* NaN if nobody says. For a guard by accuracy 0 if more than half tell neither figure; with `hostile` each of those counts as 0. */
	double accuracy;
};

/* Lowers weights to the most that none may exceed where `hostile` of `count` devices may lie: the median of the weights, or less where they
 * would have half. ERR_NOMEM. */
ERR_MUST_USE enum err metric_cap(double *weights, size_t count, uint32_t hostile);

/* What one device reports under a name of its trainer's. */
struct metric_value {
	double weight; /* examples it trained on, above 0 */
	double value; /* finite */
};

/* The same of an own metric: the mean, or the median that `hostile` devices cannot move. NaN if nobody reports it, or too few. Changes
 * the order of the values and their weights. */
double metric_own(const struct job_spec *spec, struct metric_value *values, size_t count);

/* ERR_NOMEM. */
ERR_MUST_USE enum err metric_of(struct metric *out, const struct job_spec *spec,
    const struct metric_report *reports, size_t count);

/* --- what figures weigh (metric_counted.c)
 *
 * The training figures of a round, and what a device's figures weigh in means over devices: as much as counted in them, so that the mean
 * is a sum over what counted divided by what counted. Who does not say what counted (an old agent, a program) weighs as much as the others do
 * for each of its examples, and its examples where nobody says. What devices say is bounded by what the job lets so many examples count for.
 * Where `hostile` of them may lie, no weight counts for more than metric_cap allows, once somebody says.
 */

/* What one device says of one of its figures. */
struct metric_device {
	double examples; /* of its manifest, above 0 */
	double
	    most; /* labels that these can count for, at most: metric_trained_most or metric_evaluated_most */
	struct report_counted says;
};

/* What a manifest and its report say of a training. */
struct metric_training {
	uint64_t examples, steps;
	bool partial;
	double loss, accuracy; /* accuracy NaN if none */
	struct report_counted says;
};

/* NaN where nothing counted. */
struct metric_figures {
	double loss, accuracy;
};

/* The most labels, or examples without labels, that so much work can have counted, each as often as a step took it. */
double metric_trained_most(const struct job_spec *spec, const struct metric_training *t);
/* And an evaluation of so many examples. */
double metric_evaluated_most(const struct job_spec *spec, uint64_t examples);

enum metric_sum { METRIC_SUM_LOSS, METRIC_SUM_LABELS };
/* Fills weights[count]; 0 for a device in whose figure nothing counted. */
void metric_weigh(double *weights, const struct job_spec *spec, const struct metric_device *devices,
    size_t count, enum metric_sum of);

/* ERR_NOMEM. */
ERR_MUST_USE enum err metric_training_figures(struct metric_figures *out,
    const struct job_spec *spec, const struct metric_training *trainings, size_t count);

#endif
