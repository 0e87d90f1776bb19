#ifndef DEVICE_STATUS_H
#define DEVICE_STATUS_H
#include "abort_reason.h"
#include "registry.h"
#include "wait_reason.h"

/*
 * The status of devices in each job that has not ended: how many are ready, wait or gave up, counted as they change, so that reading the
 * counts costs the same however many devices there are. Each such job has a place. An active device counts from its first request for a
 * task until it was silent for REGISTRY_SILENT_SECONDS longer than it was told to wait; its offer is known until REGISTRY_SEEN_SECONDS
 * longer than that wait. Under the registry's lock; any thread.
 */
#define DEVICE_STATUS_PLACES 4096
#define DEVICE_STATUS_NO_PLACE \
	UINT32_MAX /* legal below: then nothing is noted and nothing is known */

/* Numbers of devices in a job. A device is in one of them, or in none: then the job was not considered, as another had work for it. */
struct device_status {
	uint32_t ready; /* work for the job, have reported, or wait for their turn */
	uint32_t waiting[WAIT_UNKNOWN]; /* told to wait for another reason than their turn */
	uint32_t gave_up[ABORT_UNKNOWN + 1]; /* gave up their last task of the job, by the reason */
};

/* A place for a new job; DEVICE_STATUS_NO_PLACE if none is left, or no memory. device_status_close gives it back when the job ends. */
uint32_t device_status_open(struct registry *r);
void device_status_close(struct registry *r, uint32_t place);
/* The numbers of a job; all zero for DEVICE_STATUS_NO_PLACE. */
struct device_status device_status_get(struct registry *r, uint32_t place);

/* What a device that asks for a task is told about each job: device_status_begin before the first job is considered, device_status_say for each job,
 * device_status_tell after the last. */
struct device_status_ask {
	uint64_t closings; /* registry.closings at device_status_begin */
	uint32_t count; /* places in `said` */
	uint8_t said[DEVICE_STATUS_PLACES];
};
void device_status_begin(struct registry *r, struct device_status_ask *a);
void device_status_say(struct device_status_ask *a, uint32_t place, enum wait_reason why);
/* seconds: how long the device was told to wait, or may work on its task. */
void device_status_tell(struct registry *r, const uint8_t device[32],
    const struct device_status_ask *a, double seconds);

/* The device's task of the job ended: given up, or with a delta that was accepted. */
void device_status_gave_up(
    struct registry *r, const uint8_t device[32], uint32_t place, enum abort_reason reason);
void device_status_reported(struct registry *r, const uint8_t device[32], uint32_t place);

/* What a device offered last. */
struct device_status_offer {
	bool has_data; /* the device has the data set that was asked for */
	uint64_t examples; /* examples of the data set, */
	uint64_t tokens; /* or tokens, if it is a text (allowance_examples) */
	bool has_trainer; /* the device has the trainer that was asked for */
	/* In place of the trainer the device has a program that evaluates its models (RECIPE_FEATURE_EVALUATE_PROGRAM). */
	bool evaluates;
	uint64_t memory_bytes; /* 0: not said */
	bool draws; /* the device draws a share if it has more examples than a job lets it claim */
	bool lately; /* the device is not silent */
	bool lacks_figures; /* the trainer does not report what evaluate.figures asks for */
};
/* Is the device active, and is its last offer known? *out: what it offers of the data set and the trainer of these names. */
struct device_status_ask_for {
	const char *data, *trainer;
};
bool device_status_heard(struct registry *r, const uint8_t device[32],
    const struct device_status_ask_for *what, struct device_status_offer *out);

/* Takes silent devices out of the numbers, and forgets old offers. Call now and then. */
void device_status_sweep(struct registry *r);

#endif
