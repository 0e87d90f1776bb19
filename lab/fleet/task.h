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
 * What a device of a simulated fleet does with a task: the agent's own training, codecs and memory between rounds, and the checks that the
 * coordinator makes of an upload, in its order and words. Only keys, network and disk are left out.
 *
 *     fleet_task_train -> fleet_attack_round, for the hostile -> fleet_task_encode -> fleet_task_accepted -> fleet_task_committed
 *
 * The first and the third run in several threads, for tasks of different devices at a time.
 */

/* What a device keeps of the job between tasks; NULL: nothing yet. */
struct fleet_memory {
	float *residual; /* what encoding lost so far */
	float *own; /* control variate */
	uint8_t *local; /* the tensors that stay on the device, one behind the other */
	char task
	    [33]; /* the program's last one, "" before the first: what it wanted kept is in a file of that name */
};

/* What all devices of a simulation have in common. The pointers are the caller's. */
struct fleet_shop {
	const struct fleet *fleet;
	const struct job_spec *job;
	char job_hex[33];
	const struct settings *settings;
	const struct tensor_table *table;
	struct fleet_deal *deal;
	struct fleet_slots *slots;
	bool programs; /* the trainer is one */
	bool (*stop)(void *context); /* of programs: the simulation is to end; NULL: never */
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
	const float *variate; /* the coordinator's; NULL: zeros, or there is none */
	const char *path; /* its file, for programs */
	uint64_t file_bytes;
};

enum fleet_outcome {
	FLEET_DONE, /* there is a payload, or a measurement */
	FLEET_REFUSED, /* no coordinator would take it: `refused` is the error word */
	FLEET_GAVE_UP, /* `abort` says why */
};

struct fleet_task {
	/* given */
	size_t device;
	uint64_t round;
	const struct fleet_base *base;
	enum task_kind kind;
	uint64_t steps; /* to be done; 0: as the job says */
	/* found */
	enum fleet_outcome outcome;
	const char *refused;
	enum abort_reason abort;
	struct why why;
	enum err e; /* the simulation itself cannot go on */
	float *delta, *change; /* before encoding; of the control variate, NULL without one */
	uint8_t *payload;
	uint64_t len;
	struct vectors vectors; /* what the payload holds */
	uint64_t examples, steps_done;
	double loss, accuracy, norm, normaliser; /* accuracy NaN if none */
	bool partial;
	struct report_counted trained, evaluated; /* what the figures are means of */
	bool has_measured;
	uint64_t measured_examples;
	double measured_loss, measured_accuracy; /* of the base */
	double own; /* the monitor's own metric; NaN: not reported */
	struct fleet_memory after; /* what it keeps once the delta is taken */
	char id[33]; /* of a program's task, in hex */
	bool hostile_done;
};

/* The steps and examples of the job's own amount of work for a device that trains on so many; `speed` in examples a second turns seconds
 * into steps. */
struct fleet_amount {
	uint64_t steps; /* to be given to the task; 0: the job's epochs or steps as they stand */
	double samples; /* that training goes through */
};
struct fleet_amount fleet_task_amount(
    const struct local_spec *local, uint64_t examples, double speed);

/* Fills delta, examples and figures. */
void fleet_task_train(const struct fleet_shop *s, struct fleet_task *t);
/* Changes what the hostile among tasks of one round send, all of them being trained. ERR_NOMEM. */
ERR_MUST_USE enum err fleet_task_attack(
    const struct fleet_shop *s, struct fleet_task *const *tasks, size_t count);
/* Makes the payload, and what the device keeps. */
void fleet_task_encode(const struct fleet_shop *s, struct fleet_task *t);
/* The delta was taken: what encoding lost goes into the next one. */
void fleet_task_accepted(const struct fleet_shop *s, struct fleet_task *t);
/* Its round made a model: the device's own variate counts. */
void fleet_task_committed(const struct fleet_shop *s, struct fleet_task *t);
/* Frees what was found. */
void fleet_task_deinit(struct fleet_task *t);

/* Bytes of a payload, the most it may be, as the device would send it. */
uint64_t fleet_task_payload(const struct job_spec *job, uint64_t elements);

#endif
