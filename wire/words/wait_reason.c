#include "wait_reason.h"

#include "words.h"

static const char *const names[] = {
    [WAIT_NONE] = "",
    [WAIT_NO_JOB] = "no-job",
    [WAIT_PAUSED] = "paused",
    [WAIT_NO_DATA] = "no-data",
    [WAIT_NO_TRAINER] = "no-trainer",
    [WAIT_UNSENT] = "unsent",
    [WAIT_NO_CODEC] = "no-codec",
    [WAIT_INELIGIBLE] = "ineligible",
    [WAIT_NOT_SELECTED] = "not-selected",
    [WAIT_REPORTED] = "reported",
    [WAIT_ABORTED] = "aborted",
    [WAIT_JOB_FULL] = "job-full",
    [WAIT_OLD_AGENT] = "old-agent",
    [WAIT_OUT_OF_MEMORY] = "out-of-memory",
    [WAIT_TOO_MANY_EXAMPLES] = "too-many-examples",
    [WAIT_NO_FIGURES] = "no-figures",
    [WAIT_RESTING] = "resting",
    [WAIT_BUSY] = "busy",
    [WAIT_RESTARTING] = "restarting",
    [WAIT_ON_BATTERY] = "on-battery",
    [WAIT_BATTERY_LOW] = "battery-low",
    [WAIT_HOT] = "hot",
    [WAIT_MACHINE_BUSY] = "machine-busy",
    [WAIT_HOURS] = "hours",
    [WAIT_CHECK] = "check",
    [WAIT_METERED] = "metered",
    [WAIT_DATA_CAP] = "data-cap",
    [WAIT_SPOOL_FULL] = "spool-full",
    [WAIT_DISK_FULL] = "disk-full",
    [WAIT_DISK_READ_ONLY] = "disk-read-only",
    [WAIT_DISK_ERROR] = "disk-error",
    [WAIT_STORE_FAILED] = "store-failed",
    [WAIT_NO_DESCRIPTORS] = "no-descriptors",
    [WAIT_NO_MEMORY] = "no-memory",
    [WAIT_CERTIFICATE_EXPIRED] = "certificate-expired",
    [WAIT_CLOCK_BEHIND] = "clock-behind",
    [WAIT_UNKNOWN] = "",
};

const char *
wait_reason_name(enum wait_reason r)
{
	return names[r];
}

enum wait_reason
wait_reason_find(const char *name)
{
	return (enum wait_reason)words_find(names, WAIT_UNKNOWN, name);
}

bool
wait_reason_is_owners(enum wait_reason r)
{
	return r >= WAIT_ON_BATTERY && r <= WAIT_DATA_CAP;
}
