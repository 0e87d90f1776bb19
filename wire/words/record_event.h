#ifndef RECORD_EVENT_H
#define RECORD_EVENT_H

/* What an entry of the audit chain is about: the `event` of its body (FORMAT.md, "Audit bodies"). */
enum record_event {
	RECORD_UNKNOWN, /* a word that this version does not know: a newer coordinator's */
	RECORD_COORDINATOR_INITIALISED,
	RECORD_COORDINATOR_STARTED,
	RECORD_COORDINATOR_RESTORED,
	RECORD_CA_CHANGED,
	RECORD_TOKEN_CREATED,
	RECORD_TOKEN_REVOKED,
	RECORD_DEVICE_JOINED,
	RECORD_DEVICE_ROTATED,
	RECORD_DEVICE_SUSPENDED,
	RECORD_DEVICE_RESUMED,
	RECORD_DEVICE_REVOKED,
	RECORD_DEVICE_CHANGED, /* name or labels */
	RECORD_DEVICE_LEFT,
	RECORD_DEVICE_ERASED,
	RECORD_JOB_SUBMITTED,
	RECORD_JOB_STATE,
	RECORD_JOB_SET, /* overrides of a job's document changed */
	RECORD_JOB_DELETED,
	RECORD_MODEL_DELETED,
	RECORD_MODEL_EVALUATED, /* by a program of a named evaluator, before its round ends */
	RECORD_ROUND_COMMITTED,
	RECORD_ROUND_FAILED,
	RECORD_ROUND_EVALUATED,
	RECORD_DELTA_LOST,
	RECORD_CLOCK_CONFIRMED, /* an administrator says that the clock is right */
	RECORD_REFUSED,
	RECORD_EVENTS, /* how many there are */
};

/* The word of an event; "" for RECORD_UNKNOWN. */
const char *record_event_name(enum record_event v);
enum record_event record_event_find(const char *name);

#endif
