#ifndef METRIC_H
#define METRIC_H
#include <stddef.h>

#include "messages.h"

struct job_spec;

/*
 * The metric of a round's base from the figures that devices report for it (evaluate.by: devices). Where no device may be hostile, the mean
 * of the figures, weighted by what counted in them (below). Where `hostile` devices may be, the median of the figures, which lies between
 * figures of honest devices whatever the others report: the median needs more than 2 x hostile reports, and no weight counts for more than
 * the median of the weights, nor for so much that `hostile` devices together have half. Pure.
 */

/* A loss further from zero is no number. */
#define METRIC_LOSS_MAX 1e30

/* The figures of one device; NaN: not reported, or not a number. A device in whose figures nothing counted is left out. */
struct metric_report {
	double weight; /* examples, above 0 */
	double loss, accuracy;
	double most; /* the most labels of so many examples (metric_evaluated_most) */
	/* What loss and accuracy are means of, as far as the device says. */
	struct report_counted says;
};

struct metric {
	bool known; /* false: too few reports for a metric */
	/* NaN if more than half of the devices (with `hostile`: of the weight) report a loss that is not a number; fewer such reports are
	 * left out of the mean. */
	double loss;
	/* NaN if no device reports one. For a guard by accuracy: 0 if more than half report neither loss nor accuracy; with `hostile` each
	 * such report counts as 0. */
	double accuracy;
};

/* Lowers each weight to the limit where `hostile` of `count` devices may lie: the median of the weights, or less if `hostile` devices
 * would have half of the weight. ERR_NOMEM. */
ERR_MUST_USE enum err metric_cap(double *weights, size_t count, uint32_t hostile);

/* The value that one device reports for a metric of its trainer's own. */
struct metric_value {
	double weight; /* examples it trained on, above 0 */
	double value; /* finite */
};

/* The value of an own metric over devices: the mean, or with `hostile` devices the median. NaN if no device, or too few, report the metric.
 * Changes the order of `values` and their weights. */
double metric_own(const struct job_spec *spec, struct metric_value *values, size_t count);

/* Loss and accuracy of a round's base from its reports. ERR_NOMEM. */
ERR_MUST_USE enum err metric_of(struct metric *out, const struct job_spec *spec,
    const struct metric_report *reports, size_t count);

/* --- what figures weigh (metric_counted.c)
 *
 * The training figures of a round, and the weights of devices' figures in means over devices. A figure weighs as much as counted in it, so
 * that the mean is the sum over all that counted, divided by how much counted. For a device that does not say what counted (an old agent, a
 * program) each example weighs as much as on average for the others; where no device says, the weight is the number of examples. What a
 * device says is bounded by the most that its examples can count for. Where `hostile` devices may lie, no weight counts for more than
 * metric_cap allows, once a device says what counted.
 */

/* What one device says about one of its figures. */
struct metric_device {
	double examples; /* of its manifest, above 0 */
	/* The most labels of these examples: metric_trained_most or metric_evaluated_most. */
	double most;
	struct report_counted says;
};

/* What a manifest and its report say about a training. */
struct metric_training {
	uint64_t examples, steps;
	bool partial;
	double loss, accuracy; /* accuracy NaN if none */
	struct report_counted says;
};

/* The training figures of a round; NaN where nothing counted. */
struct metric_figures {
	double loss, accuracy;
};

/* The most labels, or examples without labels, that so much work can have counted, each as often as a step took it. */
double metric_trained_most(const struct job_spec *spec, const struct metric_training *t);
/* The most labels, or examples without labels, that an evaluation of so many examples can have counted. */
double metric_evaluated_most(const struct job_spec *spec, uint64_t examples);

enum metric_sum { METRIC_SUM_LOSS, METRIC_SUM_LABELS };
/* Fills weights[count] with the weights of the devices' losses or label counts (`of`); 0 for a device in whose figure nothing counted. */
void metric_weigh(double *weights, const struct job_spec *spec, const struct metric_device *devices,
    size_t count, enum metric_sum of);

/* Means of the training losses and accuracies of a round, by those weights. ERR_NOMEM. */
ERR_MUST_USE enum err metric_training_figures(struct metric_figures *out,
    const struct job_spec *spec, const struct metric_training *trainings, size_t count);

#endif
