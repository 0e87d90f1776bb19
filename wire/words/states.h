#ifndef STATES_H
#define STATES_H
#include <stdbool.h>

/*
 * The states of jobs, devices and rounds, as they stand in messages, in the coordinator's database and in its log. Each enum has one
 * table of names; nothing is decided by a name. The `find` functions give the enum's zero for NULL and for a word that this version does
 * not know (a newer coordinator's, to be shown as received); the name of the zero is "".
 */

enum job_state { JOB_UNKNOWN, JOB_RUNNING, JOB_PAUSED, JOB_DONE, JOB_STOPPED };
const char *states_job_name(enum job_state s);
enum job_state states_job_find(const char *name);
/* Is the job running or paused? False for JOB_UNKNOWN. */
bool states_job_lives(enum job_state s);
/* Is the job done or stopped? False for JOB_UNKNOWN. */
bool states_job_over(enum job_state s);

enum device_state {
	DEVICE_UNKNOWN,
	DEVICE_ACTIVE,
	DEVICE_SUSPENDED,
	DEVICE_REVOKED,
	DEVICE_LEFT,
};
const char *states_device_name(enum device_state s);
enum device_state states_device_find(const char *name);

/* After the coordinator was restored from a backup: what is known of a device's keys that are newer than the backup's. */
enum device_claim {
	CLAIM_UNKNOWN,
	CLAIM_NONE, /* no key of the device was seen yet */
	CLAIM_USED, /* the device used the backup's key */
	CLAIM_TAKEN, /* a newer key took the place of the backup's, by its certificate */
	CLAIM_CONTESTED, /* several keys: the device is suspended until an administrator says which is its own */
	CLAIM_SETTLED, /* an administrator said which key is the device's */
};
const char *states_claim_name(enum device_claim s);
enum device_claim states_claim_find(const char *name);

/* What became of a round. A failed round keeps its number and its record, and its model is its base; so does a round that only
 * evaluates its base. */
enum round_outcome {
	OUTCOME_UNKNOWN,
	OUTCOME_OPEN,
	OUTCOME_COMMITTED,
	OUTCOME_FAILED,
	OUTCOME_EVALUATING, /* open, and only evaluates */
	OUTCOME_EVALUATED,
};
const char *states_round_name(enum round_outcome s);
enum round_outcome states_round_find(const char *name);
/* Do devices still work on the round? */
bool states_round_is_open(enum round_outcome s);
/* Does the round only evaluate its base, and make no model? */
bool states_round_evaluates(enum round_outcome s);

#endif
