#include "record_event.h"

#include "words.h"

static const char *const names[RECORD_EVENTS] = {
    [RECORD_UNKNOWN] = "",
    [RECORD_COORDINATOR_INITIALISED] = "coordinator.initialised",
    [RECORD_COORDINATOR_STARTED] = "coordinator.started",
    [RECORD_COORDINATOR_RESTORED] = "coordinator.restored",
    [RECORD_CA_CHANGED] = "ca.changed",
    [RECORD_TOKEN_CREATED] = "token.created",
    [RECORD_TOKEN_REVOKED] = "token.revoked",
    [RECORD_DEVICE_JOINED] = "device.joined",
    [RECORD_DEVICE_ROTATED] = "device.rotated",
    [RECORD_DEVICE_SUSPENDED] = "device.suspended",
    [RECORD_DEVICE_RESUMED] = "device.resumed",
    [RECORD_DEVICE_REVOKED] = "device.revoked",
    [RECORD_DEVICE_CHANGED] = "device.changed",
    [RECORD_DEVICE_LEFT] = "device.left",
    [RECORD_DEVICE_ERASED] = "device.erased",
    [RECORD_JOB_SUBMITTED] = "job.submitted",
    [RECORD_JOB_STATE] = "job.state",
    [RECORD_JOB_SET] = "job.set",
    [RECORD_JOB_DELETED] = "job.deleted",
    [RECORD_MODEL_DELETED] = "model.deleted",
    [RECORD_MODEL_EVALUATED] = "model.evaluated",
    [RECORD_ROUND_COMMITTED] = "round.committed",
    [RECORD_ROUND_FAILED] = "round.failed",
    [RECORD_ROUND_EVALUATED] = "round.evaluated",
    [RECORD_DELTA_LOST] = "delta.lost",
    [RECORD_CLOCK_CONFIRMED] = "clock.confirmed",
    [RECORD_REFUSED] = "refused",
};

const char *
record_event_name(enum record_event v)
{
	return names[v];
}

enum record_event
record_event_find(const char *name)
{
	size_t at = words_find(names, RECORD_EVENTS, name);

	return at < RECORD_EVENTS ? (enum record_event)at : RECORD_UNKNOWN;
}
