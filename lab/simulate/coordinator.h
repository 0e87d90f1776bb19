#ifndef COORDINATOR_H
#define COORDINATOR_H
#include "buf.h"
#include "dataset.h"
#include "metric.h"
#include "rate_control.h"
#include "task.h"

/*
 * The simulated coordinator's models: reports are folded and models measured with the real coordinator's arithmetic. A model lives as
 * long as somebody uses it; play.h decides which rounds there are.
 */

/* A model, counted by reference: simulate_model_take, simulate_model_drop. */
struct simulate_model {
	struct fleet_base base; /* for tasks; base.data is owned */
	uint64_t round; /* the round that made the model; 0: the initial model */
	uint8_t from[32]; /* the base of that round */
	float *state; /* optimizer state and other vectors that the job keeps; NULL: none */
	char *path; /* the model's file, for programs; or NULL */
	unsigned users;
};

struct simulate_setup {
	const struct job_spec *job;
	const char *text; /* the document as submitted */
	size_t len;
	const struct settings *settings; /* [data] for evaluation */
	/* Name of the [data] section for evaluation; NULL: the one the job names. */
	const char *test;
	const char *init; /* file of the first weights; NULL: drawn from the seed */
	const char *scratch; /* directory for files of models; "": no files are needed */
	unsigned threads;
	bool train; /* false: nothing is trained, and models have no weights */
	bool measure; /* false: the coordinator's evaluation is left out */
	bool hostile; /* some devices are hostile */
	bool backdoor; /* the success of the backdoor attack is measured */
};

/* The measurement that a device of a buffered job made of its task's base. */
struct simulate_answer {
	uint64_t round; /* of the task */
	size_t device;
	uint8_t base[32];
	double examples; /* examples that the device trained on */
	double own; /* the trainer's own metric that the monitor names; NaN: not reported */
	struct metric_report report; /* weight 0: the device measured nothing */
};

struct simulate_coordinator {
	struct simulate_setup setup;
	uint8_t job[16];
	char job_hex[33];
	struct tensor_table table;
	struct tensor_table net; /* in the network's order; empty without layers */
	/* The first weights differ from those in their file, because the network has other tensors. */
	bool refitted;
	uint64_t state_floats;
	struct dataset test, triggered;
	struct rate_control schedule;
	/* The quorum of the open round: the document's; in a replay the recorded one. */
	uint32_t quorum;
	struct simulate_model *base; /* of the open round */
	struct simulate_model **kept; /* the models that the guard may go back to, and base */
	size_t kept_count, kept_room;
	/* For a buffered job that devices evaluate: answers on bases that may still be measured; the last round whose base was measured. */
	struct simulate_answer *answers;
	size_t answer_count, answer_room;
	uint64_t measured;
};

/* Makes the initial model. The caller calls simulate_coordinator_deinit in either case. ERR_UNSUPPORTED says what cannot be simulated. */
ERR_MUST_USE enum err simulate_coordinator_init(
    struct simulate_coordinator *c, const struct simulate_setup *setup, struct why *why);
void simulate_coordinator_deinit(struct simulate_coordinator *c);

struct simulate_model *simulate_model_take(struct simulate_model *m);
void simulate_model_drop(struct simulate_model *m);

/* The result of a round. */
struct simulate_round {
	uint64_t number; /* set by the caller */
	bool last; /* set by the caller: the job reaches a limit with this round */
	size_t reports;
	bool failed; /* the new model was not finite, and the base stays */
	double norm, train_loss, train_accuracy; /* NaN: unknown */
	bool evaluated;
	uint64_t evaluated_examples;
	double loss, accuracy, own, backdoor; /* NaN: unknown */
	uint8_t base[32], model[32];
	/* For a buffered job that devices evaluate: the round whose base the figures measure; 0: this round's. */
	uint64_t measured;
	uint8_t measured_base[32]; /* that base, if measured is not 0 */
	struct rate_control_turn turn;
};

/* Folds the reports, in the order of device and task round, into a new model on top of the base, measures the model if the job says so, and
 * lets the job's guard act: c->base becomes the base of the next round. in->no_numbers: as in struct round_close; if not 0, the round has
 * failed. An error such as ERR_NOMEM means that the simulation cannot go on. */
struct simulate_reports {
	struct fleet_task *const *tasks;
	size_t count;
	uint32_t no_numbers;
};
ERR_MUST_USE enum err simulate_coordinator_fold(struct simulate_coordinator *c,
    struct simulate_round *out, const struct simulate_reports *in, struct why *why);
/* For an evaluation by devices, a round without training: the devices' figures of the base. */
ERR_MUST_USE enum err simulate_coordinator_measure(struct simulate_coordinator *c,
    struct simulate_round *out, const struct simulate_reports *in, struct why *why);
/* Writes c->base to a file as the coordinator would. */
ERR_MUST_USE enum err simulate_coordinator_save(
    const struct simulate_coordinator *c, const char *path, struct why *why);

#endif
