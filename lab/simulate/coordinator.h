#ifndef COORDINATOR_H
#define COORDINATOR_H
#include "buf.h"
#include "dataset.h"
#include "metric.h"
#include "schedule_state.h"
#include "task.h"

/*
 * What a coordinator makes of reports: models, folded and measured with the coordinator's own arithmetic. Models live as long as somebody
 * works on them; which rounds there are is for play.h.
 */

/* A model. It is shared: whoever keeps it takes it, and drops it. */
struct simulate_model {
	struct fleet_base base; /* for tasks; base.data is owned */
	uint64_t round; /* that made it; 0: the initial one */
	uint8_t from[32]; /* the base of that round */
	float *state; /* of the optimizer and what else a job keeps; NULL: none */
	char *path; /* its file, for programs; NULL */
	unsigned users;
};

struct simulate_setup {
	const struct job_spec *job;
	const char *text; /* the document as submitted */
	size_t len;
	const struct settings *settings; /* [data] for evaluation */
	const char *test; /* which of them; NULL: the one that the job names */
	const char *init; /* file of the first weights; NULL: drawn from the seed */
	const char *scratch; /* directory for files of models; "": none are wanted */
	unsigned threads;
	bool train; /* false: models are only counted */
	bool measure; /* false: the coordinator's evaluation is left out */
	bool hostile; /* some devices are */
	bool backdoor; /* its success is measured */
};

/* What a device of a buffered job said of the base that its task started from. */
struct simulate_answer {
	uint64_t round; /* of the task */
	size_t device;
	uint8_t base[32];
	double examples; /* trained on */
	double own; /* by the monitor's own metric; NaN: it does not say */
	struct metric_report report; /* weight 0: it measured nothing */
};

struct simulate_coordinator {
	struct simulate_setup setup;
	uint8_t job[16];
	char job_hex[33];
	struct tensor_table table;
	struct tensor_table net; /* in the network's order; empty without layers */
	bool
	    refitted; /* the first weights are not those of their file any more: the network has other tensors */
	uint64_t state_floats;
	struct dataset test, triggered;
	struct schedule_state schedule;
	uint32_t
	    quorum; /* of the open round: the document's, but what is repeated may have had another */
	struct simulate_model *base; /* of the round that is open */
	struct simulate_model **kept; /* those that a guard may go back to, and base */
	size_t kept_count, kept_room;
	/* buffered, by devices: of bases that may still be measured; the last round whose base was */
	struct simulate_answer *answers;
	size_t answer_count, answer_room;
	uint64_t measured;
};

/* The first model. simulate_coordinator_deinit in either case. ERR_UNSUPPORTED says what cannot be simulated. */
ERR_MUST_USE enum err simulate_coordinator_init(
    struct simulate_coordinator *c, const struct simulate_setup *setup, struct why *why);
void simulate_coordinator_deinit(struct simulate_coordinator *c);

struct simulate_model *simulate_model_take(struct simulate_model *m);
void simulate_model_drop(struct simulate_model *m);

/* What a round came to. */
struct simulate_round {
	uint64_t number; /* given */
	bool last; /* given: the job has reached a limit with it */
	size_t reports;
	bool failed; /* its model was not finite: the base stays */
	double norm, train_loss, train_accuracy; /* NaN: unknown */
	bool evaluated;
	uint64_t evaluated_examples;
	double loss, accuracy, own, backdoor; /* NaN: unknown */
	uint8_t base[32], model[32];
	uint64_t
	    measured; /* buffered, by devices: the round whose base the figures are of; 0: this one's */
	uint8_t measured_base[32]; /* unless that is 0 */
	struct schedule_turn turn;
};

/* Folds the reports, in the order of device and task round, into a model on top of the base, measures it if the job says so, and goes
 * on as the job's guard says: the base becomes that of the next round. `no_numbers`: as in struct round_close; the round has failed then
 * if it is not 0. ERR_NOMEM and the like: the simulation cannot go on. */
struct simulate_reports {
	struct fleet_task *const *tasks;
	size_t count;
	uint32_t no_numbers;
};
ERR_MUST_USE enum err simulate_coordinator_fold(struct simulate_coordinator *c,
    struct simulate_round *out, const struct simulate_reports *in, struct why *why);
/* The devices' figures of the base, of an evaluation. */
ERR_MUST_USE enum err simulate_coordinator_measure(struct simulate_coordinator *c,
    struct simulate_round *out, const struct simulate_reports *in, struct why *why);
/* Writes the base as the coordinator would. */
ERR_MUST_USE enum err simulate_coordinator_save(
    const struct simulate_coordinator *c, const char *path, struct why *why);

#endif
