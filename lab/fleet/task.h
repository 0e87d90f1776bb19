#ifndef TASK_H
#define TASK_H
#include "abort_reason.h"
#include "deal.h"
#include "job.h"
#include "messages.h"
#include "slots.h"
#include "task_kind.h"
#include "vectors.h"

/*
 * What a device of a simulated fleet does with a task: the agent's own code for training, codecs and memory between rounds, and the
 * coordinator's checks of an upload, in the same order and with the same error words. Only keys, network and disk are left out.
 *
 *     fleet_task_train -> fleet_attack_round, for the hostile -> fleet_task_encode -> fleet_task_accepted -> fleet_task_committed
 *
 * fleet_task_train and fleet_task_encode run in several threads, for tasks of different devices at a time.
 */

/* What a device keeps of the job between tasks; NULL: nothing yet. */
struct fleet_memory {
	float *residual; /* the part of earlier deltas that encoding lost */
	float *own; /* the device's control variate */
	uint8_t *local; /* the tensors that stay on the device, one behind the other */
	/* Hex id of the program's last task, "" before the first: the state that the program kept is in a file of that name. */
	char task[33];
};

/* What all devices of a simulation have in common. The pointers are the caller's. */
struct fleet_setup {
	const struct fleet *fleet;
	const struct job_spec *job;
	char job_hex[33];
	const struct settings *settings;
	const struct tensor_table *table;
	struct fleet_deal *deal;
	struct fleet_slots *slots;
	bool programs; /* the trainer is a program */
	bool (*stop)(void *context); /* for programs, true: the simulation is to end; NULL: never */
	void *context;
	struct fleet_memory *memories; /* of each device; fleet_memories_new */
};
/* NULL if memory is short. */
struct fleet_memory *fleet_memories_new(size_t count);
void fleet_memories_free(struct fleet_memory *m, size_t count);

/* A model that tasks begin from. */
struct fleet_base {
	uint8_t id[32];
	const uint8_t *data; /* table->bytes */
	const float *variate; /* the coordinator's control variate; NULL: zeros, or none */
	const char *path; /* the model's file, for programs */
	uint64_t file_bytes;
};

enum fleet_outcome {
	FLEET_DONE, /* there is a payload, or a measurement */
	FLEET_REFUSED, /* a coordinator would refuse the upload: `refused` is the error word */
	FLEET_GAVE_UP, /* the device gave the task up: `abort` says why */
};

struct fleet_task {
	/* given */
	size_t device;
	uint64_t round;
	const struct fleet_base *base;
	enum task_kind kind;
	uint64_t steps; /* steps to train; 0: as the job says */
	/* found */
	enum fleet_outcome outcome;
	const char *refused;
	enum abort_reason abort;
	struct why why;
	enum err e; /* not ERR_OK: the simulation itself cannot go on */
	/* Before encoding: the delta; the change of the control variate, or NULL. */
	float *delta, *change;
	uint8_t *payload;
	uint64_t len;
	struct vectors vectors; /* the vectors in the payload */
	uint64_t examples, steps_done;
	double loss, accuracy, norm, normaliser; /* accuracy NaN if none */
	bool partial;
	struct report_counted trained, evaluated; /* what loss and accuracy are means over */
	bool has_measured;
	uint64_t measured_examples;
	double measured_loss, measured_accuracy; /* of the base model */
	double own; /* the trainer's own metric that the monitor names; NaN: not reported */
	struct fleet_memory after; /* what the device keeps once the delta is accepted */
	char id[33]; /* of the task, in hex, if the trainer is a program */
	bool hostile_done; /* fleet_attack_delta.done */
};

/* The work that the job gives a device that trains on so many examples; `speed`, in examples a second, turns a time into steps. */
struct fleet_amount {
	uint64_t steps; /* for fleet_task.steps; 0: the job's epochs or steps */
	double samples; /* examples that the training goes through, each time counted */
};
struct fleet_amount fleet_task_amount(
    const struct local_spec *local, uint64_t examples, double speed);

/* Fills delta, examples and figures. */
void fleet_task_train(const struct fleet_setup *s, struct fleet_task *t);
/* Changes the deltas of hostile devices among the tasks of one round, all of which are trained. ERR_NOMEM. */
ERR_MUST_USE enum err fleet_task_attack(
    const struct fleet_setup *s, struct fleet_task *const *tasks, size_t count);
/* Makes the payload, and t->after. */
void fleet_task_encode(const struct fleet_setup *s, struct fleet_task *t);
/* The delta was accepted: the device keeps t->after, so that what encoding lost goes into its next delta. */
void fleet_task_accepted(const struct fleet_setup *s, struct fleet_task *t);
/* The delta's round made a model: the device keeps its new control variate. */
void fleet_task_committed(const struct fleet_setup *s, struct fleet_task *t);
/* Frees what was found. */
void fleet_task_deinit(struct fleet_task *t);

/* The most bytes that a payload of the job may have. */
uint64_t fleet_task_payload(const struct job_spec *job, uint64_t elements);

#endif
