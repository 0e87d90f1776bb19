#ifndef WAIT_REASON_H
#define WAIT_REASON_H
#include <stdbool.h>

/*
 * Why a device gets no task. What is wrong with the coordinator itself stands at the end of the list, and is also why it is not ready
 * (docs/api.md). A person reads what to do in docs/operators.md.
 */
enum wait_reason {
	WAIT_NONE, /* there is a task; the coordinator is ready */
	WAIT_NO_JOB,
	WAIT_PAUSED,
	WAIT_NO_DATA,
	WAIT_NO_TRAINER,
	WAIT_UNSENT,
	WAIT_NO_CODEC,
	WAIT_INELIGIBLE,
	WAIT_NOT_SELECTED,
	WAIT_REPORTED,
	WAIT_ABORTED,
	WAIT_JOB_FULL,
	WAIT_OLD_AGENT,
	WAIT_OUT_OF_MEMORY, /* it said so of this job, and offers what it offered then */
	WAIT_TOO_MANY_EXAMPLES, /* more than the job lets it claim, and an agent that draws no share of them */
	WAIT_NO_FIGURES, /* its trainer does not give what evaluate.figures asks for */
	WAIT_RESTING, /* it said so of this job: a task of it failed there lately */
	WAIT_BUSY,
	WAIT_RESTARTING,
	/* Of the device's owner (docs/devices.md, When the device works): the device says so itself. */
	WAIT_ON_BATTERY,
	WAIT_BATTERY_LOW,
	WAIT_HOT,
	WAIT_MACHINE_BUSY,
	WAIT_HOURS,
	WAIT_CHECK,
	WAIT_METERED,
	WAIT_DATA_CAP,
	WAIT_SPOOL_FULL,
	WAIT_DISK_FULL,
	WAIT_DISK_READ_ONLY,
	WAIT_DISK_ERROR,
	WAIT_STORE_FAILED,
	WAIT_NO_DESCRIPTORS,
	WAIT_NO_MEMORY,
	WAIT_CERTIFICATE_EXPIRED,
	WAIT_CLOCK_BEHIND,
	WAIT_UNKNOWN, /* a word that this version does not know: a newer coordinator's, to be shown as it came */
};

/* "" of the first and the last. */
const char *wait_reason_name(enum wait_reason r);
/* WAIT_NONE for "". */
enum wait_reason wait_reason_find(const char *name);
/* Is it one of those that a device's owner has? */
bool wait_reason_is_owners(enum wait_reason r);

#endif
