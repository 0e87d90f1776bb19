#ifndef TRAIN_H
#define TRAIN_H
#include "stepper.h"

struct dataset;

/*
 * Local training and evaluation over a data set. Deterministic for epochs and steps: the order of examples and dropout
 * come from `seed` alone. A time budget decides only how many steps are done: the time that the steps so far took tells which
 * number of steps ends nearest to it.
 */
struct train_config {
	const struct local_spec *local;
	const struct data_spec *data; /* normalisation and, for training, augmentation */
	uint64_t round; /* for the schedule, from 1 */
	uint64_t seed; /* of this device's work in this round */
	const float *shift; /* added to every gradient (net_update.shift); NULL: none */
	/* Of an evaluation: counts for the data set's classes, to which the evaluation's are added, undefined after an error; NULL:
	 * none. */
	struct counts *counts;
	/* Called after every step but the last, where there is nothing left to end; returning true ends training there (partial
	 * work). NULL: never. */
	bool (*stop)(void *context, uint64_t steps_done, uint64_t steps_planned);
	void *context;
};

struct train_result {
	/* Different examples that the steps took. Of partial work with a number of steps planned: the different examples of the whole work
	 * x steps done / steps planned, rounded down, at least 1. */
	uint64_t examples;
	uint64_t steps;
	/* Means over everything that the steps took, each before its step: 0 and NaN if nothing counted, accuracy NaN also for
	 * regression. */
	double loss, accuracy;
	/* The divisor of `loss`: examples, or labels by their weights (net_result). */
	double loss_count;
	/* Labels that counted, and those of them that were right; 0 for regression. */
	uint64_t labels, right;
	bool partial; /* stopped before the planned work */
	double normaliser; /* sum of the local step weights (FedNova): steps for plain SGD,
			      [t - m(1-m^t)/(1-m)]/(1-m) with momentum m, [1-(1-rate mu)^t]/(rate mu) with prox mu;
			      steps for Adam and AdamW, which have none */
};

/* Does the data set fit the net, its labels included? ERR_INVALID, ERR_LIMIT; `why` says what differs. */
ERR_MUST_USE enum err train_check(
    const struct net *net, const struct dataset *data, struct why *why);

/* Trains the stepper's parameters, from fresh momentum; at least one step. ERR_NUMERIC if the loss or a weight is no longer finite,
 * ERR_LIMIT if the net was not built for batches of this size, ERR_INVALID if data and net do not fit, no label counts, or a piece has
 * fewer examples than local->least. A last, smaller batch of an epoch is used, unless it has fewer than local->least examples, which then
 * wait for the next epoch. A step whose labels all weigh nothing is skipped. */
ERR_MUST_USE enum err train_run(struct stepper stepper, const struct dataset *data,
    const struct train_config *config, struct train_result *result, struct why *why);

/* Does any example of the set, which fits the net, count in the loss? False: all labels are ignored, or weigh nothing. */
bool train_counts(const struct net *net, const struct dataset *data);

/* The steps that train_run makes with this config and data set. `pieces`, or NULL: which examples they take (pieces_plan). */
struct pieces;
struct net_update train_update(
    const struct train_config *config, const struct dataset *data, struct pieces *pieces);

/* The most bytes that train_run takes with this net, config and data set, the net's own bytes included. Prepares the net. Errors of
 * net_prepare. */
ERR_MUST_USE enum err train_bytes(struct net *net, const struct train_config *config,
    const struct dataset *data, uint64_t *bytes, struct why *why);

/* Bytes that an evaluation takes beside the net, of so many examples as the set has. */
uint64_t train_evaluate_bytes(const struct net *net, const struct dataset *data, uint64_t examples);

struct train_score {
	uint64_t examples;
	/* Labels that count, and those of them that are right; 0 without labels. */
	uint64_t labels, right;
	/* The divisor of the mean loss: examples, or labels by their weights (net_result). */
	double weight;
	double loss; /* mean, of a text per token */
	double accuracy; /* share of labels that are right; NaN for regression */
};
/* Evaluates on the whole set in batches. */
ERR_MUST_USE enum err train_evaluate(struct stepper stepper, const struct dataset *data,
    const struct data_spec *spec, struct train_score *score, struct why *why);
/* train_evaluate with the config's data, counts, stop and context. `stop` is called before every batch, with how many batches are done and
 * how many there are. ERR_CLOSED once `stop` returns true. */
ERR_MUST_USE enum err train_evaluate_while(struct stepper stepper, const struct dataset *data,
    const struct train_config *config, struct train_score *score, struct why *why);

#endif
