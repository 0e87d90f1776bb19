#ifndef STANDING_H
#define STANDING_H
#include "abort_reason.h"
#include "registry.h"
#include "wait_reason.h"

/*
 * How devices stand to each job that is not over: counts, kept as they change, so that reading them costs the same however many
 * devices there are. A job has a place here while it lives. A device counts from its first ask until it was not heard of for
 * REGISTRY_SILENT_SECONDS longer than it was given, and while it is active; what it offered is known until REGISTRY_SEEN_SECONDS longer. Under the registry's lock; any thread.
 */
#define STANDING_PLACES 4096
#define STANDING_NO_PLACE UINT32_MAX /* legal below: then nothing is noted and nothing is known */

/* Each device is in one of these, or in none: then it was not asked about the job, because another one had work for it. */
struct standing {
	uint32_t
	    ready; /* has what the job needs: works for it, has reported, or waits for its turn */
	uint32_t waiting[WAIT_UNKNOWN]; /* told to wait for another reason than its turn */
	uint32_t gave_up[ABORT_UNKNOWN + 1]; /* its last task of the job ended so */
};

/* STANDING_NO_PLACE if there is none left, or no memory. */
uint32_t standing_open(struct registry *r);
void standing_close(struct registry *r, uint32_t place);
/* All zero without a place. */
struct standing standing_get(struct registry *r, uint32_t place);

/* What one ask comes to: begun before the first job is looked at, told when the last was. */
struct standing_ask {
	uint64_t closings; /* of places, before it */
	uint32_t count;
	uint8_t said[STANDING_PLACES];
};
void standing_begin(struct registry *r, struct standing_ask *a);
void standing_say(struct standing_ask *a, uint32_t place, enum wait_reason why);
/* seconds: how long the device may be silent with what it got. */
void standing_tell(
    struct registry *r, const uint8_t device[32], const struct standing_ask *a, double seconds);

/* The device's task of the job ended: given up, or with a delta that was accepted. */
void standing_gave_up(
    struct registry *r, const uint8_t device[32], uint32_t place, enum abort_reason reason);
void standing_reported(struct registry *r, const uint8_t device[32], uint32_t place);

/* What a device offered last. */
struct standing_offer {
	bool has_data; /* the data set that was asked for, */
	uint64_t examples; /* with so many examples, */
	uint64_t tokens; /* or so many tokens of a text (allowance_examples) */
	bool has_trainer; /* likewise */
	bool
	    evaluates; /* has not the trainer, but a program that evaluates its models (RECIPE_FEATURE_EVALUATE_PROGRAM) */
	uint64_t memory_bytes; /* 0: not said */
	bool draws; /* a share, where it has more examples than a job lets it claim */
	bool lately; /* it is not silent */
	bool
	    lacks_figures; /* its trainer of that name does not give what evaluate.figures asks for */
};
/* Is it active, and was it heard of lately? *out: of the data set and the trainer of these names. */
struct standing_ask_for {
	const char *data, *trainer;
};
bool standing_heard(struct registry *r, const uint8_t device[32],
    const struct standing_ask_for *what, struct standing_offer *out);

/* Forgets who is silent for too long. Call now and then. */
void standing_sweep(struct registry *r);

#endif
