#include "abort_reason.h"

#include <stdio.h>

#include "words.h"

static const char *const names[] = {
    [ABORT_NONE] = "",
    [ABORT_UNKNOWN_KIND] = "unknown-kind",
    [ABORT_UNSUPPORTED] = "unsupported",
    [ABORT_NO_DATA] = "no-data",
    [ABORT_DATA_MISMATCH] = "data-mismatch",
    [ABORT_NO_TRAINER] = "no-trainer",
    [ABORT_REFUSED] = "refused",
    [ABORT_TOO_LARGE] = "too-large",
    [ABORT_OUT_OF_MEMORY] = "out-of-memory",
    [ABORT_DISK_FULL] = "disk-full",
    [ABORT_DISK_FAILED] = "disk-failed",
    [ABORT_BAD_MODEL] = "bad-model",
    [ABORT_VARIATE_LOST] = "variate-lost",
    [ABORT_NOT_FINITE] = "not-finite",
    [ABORT_TRAINER_FAILED] = "trainer-failed",
    [ABORT_NO_FIGURES] = "no-figures",
    [ABORT_DEADLINE] = "deadline",
    [ABORT_STOPPED] = "stopped",
    [ABORT_ON_BATTERY] = "on-battery",
    [ABORT_BATTERY_LOW] = "battery-low",
    [ABORT_HOT] = "hot",
    [ABORT_MACHINE_BUSY] = "machine-busy",
    [ABORT_HOURS] = "hours",
    [ABORT_CHECK] = "check",
    [ABORT_METERED] = "metered",
    [ABORT_DATA_CAP] = "data-cap",
    [ABORT_UNKNOWN] = "",
};

const char *
abort_reason_name(enum abort_reason r)
{
	return names[r];
}

enum abort_reason
abort_reason_find(const char *name)
{
	return (enum abort_reason)words_find(names, ABORT_UNKNOWN, name);
}

enum abort_reason
abort_reason_of_owner(enum wait_reason r)
{
	return wait_reason_is_owners(r)
	    ? (enum abort_reason)((int)ABORT_ON_BATTERY + (int)r - (int)WAIT_ON_BATTERY)
	    : ABORT_NONE;
}

bool
abort_reason_passes(enum abort_reason r)
{
	return r >= ABORT_STOPPED && r <= ABORT_DATA_CAP;
}

enum abort_reason
abort_reason_of_disk(enum err e)
{
	if (e == ERR_NOSPACE)
		return ABORT_DISK_FULL;
	return e == ERR_READONLY || e == ERR_IO || e == ERR_FILES ? ABORT_DISK_FAILED : ABORT_NONE;
}

bool
abort_reason_is_jobs(enum abort_reason r)
{
	return r != ABORT_NONE && r != ABORT_DISK_FULL && r != ABORT_DISK_FAILED &&
	    !abort_reason_passes(r);
}

struct abort_cause
abort_reason_cause(enum abort_reason r)
{
	struct abort_cause cause = {.reason = r};

	snprintf(cause.word, sizeof(cause.word), "%s", names[r]);
	return cause;
}

struct abort_cause
abort_reason_parse(const char *word)
{
	struct abort_cause cause = {.reason = abort_reason_find(word)};

	snprintf(cause.word, sizeof(cause.word), "%s", word);
	return cause;
}
