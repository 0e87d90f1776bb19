#ifndef WAIT_REASON_H
#define WAIT_REASON_H
#include <stdbool.h>

/*
 * Why a device gets no task. Faults of the coordinator itself stand at the end of the list, and are also why the coordinator is not ready
 * (docs/api.md). docs/operators.md tells people what to do.
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
	WAIT_OUT_OF_MEMORY, /* the device aborted this job's task for lack of memory, and its offer has not changed since */
	WAIT_TOO_MANY_EXAMPLES, /* the device has more than the job lets it claim, and an agent too old to draw a share */
	WAIT_NO_FIGURES, /* the device's trainer does not give what evaluate.figures asks for */
	WAIT_RESTING, /* the device wants no task of this job for now, because one failed there lately */
	WAIT_BUSY,
	WAIT_RESTARTING,
	/* The device's owner does not let it work now (docs/devices.md, When the device works); the device says so itself. */
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

/* The word of a reason; "" for WAIT_NONE and WAIT_UNKNOWN. */
const char *wait_reason_name(enum wait_reason r);
/* The reason of a word; WAIT_NONE for "", WAIT_UNKNOWN for an unknown word. */
enum wait_reason wait_reason_find(const char *name);
/* Is the reason one of a device's owner: WAIT_ON_BATTERY to WAIT_DATA_CAP? */
bool wait_reason_is_owners(enum wait_reason r);

#endif
