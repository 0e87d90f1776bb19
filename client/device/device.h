#ifndef DEVICE_H
#define DEVICE_H
#include "abort_reason.h"
#include "eligibility.h"
#include "events.h"
#include "finish.h"
#include "session.h"
#include "settings.h"
#include "wait_reason.h"

/*
 * The agent's interface to a device, beyond rivulet.h: the agent fills in the offer, judges a task before its model is fetched, changes the
 * work in place and hands it in with finish_submit. Returned pointers belong to the device and live until rivulet_close.
 */
struct rivulet;
struct rivulet_options;

/* Opens a device as rivulet_open does, for the agent: `log` hears what happens in place of options->event, and gets the settings' format as soon
 * as they are read. */
int device_open(struct rivulet **out, const struct rivulet_options *options, struct events_log *log,
    struct why *why);
/* The offer. The agent fills in data, trainers and what trainers can do, and may change these between tasks; the device fills in the
 * rest. */
struct offer *device_offer(struct rivulet *r);
/* `consider` is called for each task before its model is fetched, and may change the work's task and text. It returns ABORT_NONE, or why
 * the task is given back, with a sentence in `why`; with ABORT_OUT_OF_MEMORY it sets needed_bytes and memory_bytes of the work. */
void device_consider(struct rivulet *r,
    enum abort_reason (*consider)(void *context, struct work *work, struct why *why),
    void *context);
/* While `wanted` returns true, rivulet_next does not wait but returns RIVULET_TIMEOUT, unless a task has come. */
void device_interrupt(struct rivulet *r, bool (*wanted)(void *context), void *context);
/* The task in hand until it is submitted, aborted or dropped for the next one; NULL without a task. */
struct work *device_task(struct rivulet *r);
/* What rivulet_abort does, and returns. */
int device_abort(struct rivulet *r, struct abort_cause cause, const char *log);
/* Should this device stop (rivulet_options.cancel)? context: the handle. */
bool device_cancelled(void *context);
/* Sets the function that asks the owner's program, where [eligibility] has a check. */
void device_check_with(struct rivulet *r, eligibility_check *check, void *context);
/* The owner's rule that ends training now, with a sentence in `why`; WAIT_NONE: none does. */
enum wait_reason device_stops(struct rivulet *r, struct why *why);
/* The word that the coordinator was last told about the owner's rules: the rule that forbids work, or "". */
const char *device_unready(const struct rivulet *r);
/* Bytes that a task may take here: the owner's memory_bytes, else what the machine lets this process have; 0: not known. */
uint64_t device_memory(const struct rivulet *r);
/* If the device waits because the last task did not fit into memory: a sentence with the bytes needed and present; else "". */
const char *device_shortage(const struct rivulet *r);
/* Waits after a failed task, longer after each failure in a row until a delta is accepted; does not wait if only the job is paused
 * (job_backoff.h). False: cancelled. */
bool device_wait(struct rivulet *r);
/* Why rivulet_submit gave RIVULET_IO. */
enum abort_reason device_disk(const struct rivulet *r);

/* What the coordinator's last answer says of this device. */
enum standing {
	STANDING_GOOD,
	STANDING_UNREACHABLE, /* no coordinator answers, or what stands before it does */
	STANDING_SUSPENDED,
	STANDING_REVOKED,
	STANDING_LEFT,
	STANDING_REFUSED, /* for anything else */
};

/* What the device does and did, for metrics. */
struct device_figures {
	enum device_task { DEVICE_NO_TASK, DEVICE_TRAINS, DEVICE_EVALUATES } task;
	enum wait_reason reason; /* why there is no task, as it was last told */
	enum standing standing;
	uint64_t rounds; /* deltas and reports taken for good, since rivulet_open */
	double contact; /* wall clock of the coordinator's last answer; 0: none yet */
	uint64_t sent, received; /* bytes, since rivulet_open */
	uint64_t outbox_deltas, outbox_bytes;
	int64_t certificate_end; /* Unix seconds */
};
/* Sets task, reason and standing: costs nothing. */
void device_state(const struct rivulet *r, struct device_figures *out);
/* Sets the rest; looks at the outbox's files. */
void device_count(const struct rivulet *r, struct device_figures *out);

const char *device_home(const struct rivulet *r);
const struct settings *device_settings(const struct rivulet *r);
const struct events *device_events(const struct rivulet *r);
struct session *device_session(struct rivulet *r);

#endif
