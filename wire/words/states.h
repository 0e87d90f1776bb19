#ifndef STATES_H
#define STATES_H
#include <stdbool.h>

/*
 * What state a job, a device and a round are in, as they stand in messages, in the coordinator's database and in its log. Each has one
 * table of names; nothing is decided by a name. `find` gives the zero of its kind for a word that this version does not know (a newer
 * coordinator's: show it as it came) and for NULL; the name of that zero is "".
 */

enum job_state { JOB_UNKNOWN, JOB_RUNNING, JOB_PAUSED, JOB_DONE, JOB_STOPPED };
const char *states_job_name(enum job_state s);
enum job_state states_job_find(const char *name);
/* Neither done nor stopped. */
bool states_job_lives(enum job_state s);
/* Done or stopped: not of a state that this version does not know. */
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

/* Of a device in a state that was restored from a backup, since then: what is known of keys that are newer than the backup's. */
enum device_claim {
	CLAIM_UNKNOWN,
	CLAIM_NONE, /* no key of it was seen */
	CLAIM_USED, /* the backup's key was */
	CLAIM_TAKEN, /* a newer one took its place, by its certificate */
	CLAIM_CONTESTED, /* suspended: which key is its own is for an administrator to say, */
	CLAIM_SETTLED, /* who has said it */
};
const char *states_claim_name(enum device_claim s);
enum device_claim states_claim_find(const char *name);

/* What became of a round. One that failed has its number and its record, and its model is its base; so it is with one that only
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
/* Do devices still work on it? */
bool states_round_is_open(enum round_outcome s);
/* Has it no model of its own to make? */
bool states_round_evaluates(enum round_outcome s);

#endif
