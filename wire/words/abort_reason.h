#ifndef ABORT_REASON_H
#define ABORT_REASON_H
#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "wait_reason.h"

/*
 * Why a device gives a task back (FORMAT.md, "Abort"). A person reads what to do in docs/operators.md. The words stay: they travel, stand
 * in logs and in the coordinator's database.
 */
enum abort_reason {
	ABORT_NONE, /* there is no reason: the task is done */
	ABORT_UNKNOWN_KIND,
	ABORT_UNSUPPORTED,
	ABORT_NO_DATA,
	ABORT_DATA_MISMATCH,
	ABORT_NO_TRAINER,
	ABORT_REFUSED, /* the device's owner does not allow the task */
	ABORT_TOO_LARGE,
	ABORT_OUT_OF_MEMORY,
	ABORT_DISK_FULL,
	ABORT_DISK_FAILED, /* the device's disk cannot be written or read */
	ABORT_BAD_MODEL,
	ABORT_VARIATE_LOST,
	ABORT_NOT_FINITE,
	ABORT_TRAINER_FAILED,
	ABORT_NO_FIGURES, /* the trainer does not give what evaluate.figures asks for */
	ABORT_DEADLINE,
	ABORT_STOPPED,
	/* The owner's rules stopped the task; in the order of enum wait_reason. */
	ABORT_ON_BATTERY,
	ABORT_BATTERY_LOW,
	ABORT_HOT,
	ABORT_MACHINE_BUSY,
	ABORT_HOURS,
	ABORT_CHECK,
	ABORT_METERED,
	ABORT_DATA_CAP,
	ABORT_UNKNOWN, /* a word that this version does not know: a newer device's, or a trainer's own */
};

/* The word of a reason; "" for ABORT_NONE and ABORT_UNKNOWN. */
const char *abort_reason_name(enum abort_reason r);
/* The reason of a word; ABORT_NONE for "", ABORT_UNKNOWN for an unknown word. */
enum abort_reason abort_reason_find(const char *name);
/* The abort reason for one of the owner's wait reasons (wait_reason_is_owners); ABORT_NONE for any other. */
enum abort_reason abort_reason_of_owner(enum wait_reason r);
/* Can the device do the same task soon after? True if the agent was stopped, or its owner's rules stopped the task. */
bool abort_reason_passes(enum abort_reason r);
/* The abort reason for an error of the device's disk; ABORT_NONE for any other error. */
enum abort_reason abort_reason_of_disk(enum err e);
/* May the job be the cause? If not, the device would for now fail at tasks of other jobs, too. */
bool abort_reason_is_jobs(enum abort_reason r);

/* A reason with its word; of ABORT_UNKNOWN the word that was received. needed_bytes, memory_bytes: how many bytes the task takes and the
 * device has, for an ABORT_OUT_OF_MEMORY that was found before the model was fetched; else 0. */
#define ABORT_WORD_MAX 33 /* with its end */
struct abort_cause {
	enum abort_reason reason;
	char word[ABORT_WORD_MAX];
	uint64_t needed_bytes, memory_bytes;
};
struct abort_cause abort_reason_cause(enum abort_reason r);
/* The cause for a word from outside, which is cut to fit. */
struct abort_cause abort_reason_parse(const char *word);

#endif
