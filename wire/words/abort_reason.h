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
	ABORT_REFUSED, /* by the device's owner */
	ABORT_TOO_LARGE,
	ABORT_OUT_OF_MEMORY,
	ABORT_DISK_FULL,
	ABORT_DISK_FAILED, /* it cannot be written or read */
	ABORT_BAD_MODEL,
	ABORT_VARIATE_LOST,
	ABORT_NOT_FINITE,
	ABORT_TRAINER_FAILED,
	ABORT_NO_FIGURES, /* the trainer does not give what evaluate.figures asks for */
	ABORT_DEADLINE,
	ABORT_STOPPED,
	/* What the owner's rules say meanwhile, in the order of enum wait_reason. */
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

/* "" of the first and the last. */
const char *abort_reason_name(enum abort_reason r);
/* ABORT_NONE for "". */
enum abort_reason abort_reason_find(const char *name);
/* Of one that wait_reason_is_owners; else ABORT_NONE. */
enum abort_reason abort_reason_of_owner(enum wait_reason r);
/* The device may do the same task soon after: it was stopped, or its owner's rules kept it from it. */
bool abort_reason_passes(enum abort_reason r);
/* Of a device's disk that took or gave no bytes; else ABORT_NONE. */
enum abort_reason abort_reason_of_disk(enum err e);
/* Has the job a part in it? Else the device would fail at any other, too, for now. */
bool abort_reason_is_jobs(enum abort_reason r);

/* A reason with its word, which of ABORT_UNKNOWN is the one that came. Of ABORT_OUT_OF_MEMORY, found before anything was fetched, also how
 * many bytes the task takes and the device has; else 0. */
#define ABORT_WORD_MAX 33 /* with its end */
struct abort_cause {
	enum abort_reason reason;
	char word[ABORT_WORD_MAX];
	uint64_t needed_bytes, memory_bytes;
};
struct abort_cause abort_reason_cause(enum abort_reason r);
/* A word from outside; it is cut to fit. */
struct abort_cause abort_reason_parse(const char *word);

#endif
