#ifndef ROW_H
#define ROW_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "states.h"

/*
 * The rows of the database as structs; store.h reads and writes them. Times are Unix seconds. Texts are zero-terminated.
 */
#define STORE_LABELS_MAX 4096

struct store_device {
	uint8_t id[32];
	uint8_t spki[91]; /* current key */
	char name[64];
	char role[16]; /* device, reader, submitter, admin */
	enum device_state state;
	char labels[STORE_LABELS_MAX]; /* a JSON object */
	double joined_at;
	uint8_t previous[91]; /* the key before the last rotation; zero if there was none */
	/* Generation of the CA behind the newest certificate that the device has used. */
	uint64_t ca_generation;
	/* Unix time from which the limit on key rotations counts none of the device's. */
	double rotations_at;
	double key_at; /* Unix time at which the key was the device's already; 0: not known */
	/* key_at in the backup that this state was restored from; 0: none. */
	double restored_key_at;
	/* Of keys seen since the restore; CLAIM_UNKNOWN is written as CLAIM_NONE. */
	enum device_claim claim;
};

/* After a restore from a backup: a key that is not on record, and whose certificate names the device. */
struct store_claim {
	uint8_t device[32], spki[91];
	double issued_at; /* of the certificate, Unix seconds */
};

/* What a device last said, and was last told. Texts are "" and numbers NaN where nothing is known. */
struct store_seen {
	uint8_t device[32];
	double last_contact; /* Unix seconds */
	char agent[32];
	char reason[64]; /* why the device was last told to wait, or refused; "" when given work */
	char refused[32]; /* the last error word sent to the device */
	double refused_at; /* when, Unix seconds */
	char aborted[32]; /* why the device last gave up a task */
	double aborted_at; /* when, Unix seconds */
	double clock_offset; /* the device's clock minus the coordinator's, seconds */
	double disk_free; /* bytes */
	uint8_t machine[32]; /* the machine the device was last seen on; zero if it did not say */
	/* Another machine that the device's key was seen on; zero if none. */
	uint8_t other_machine[32];
};

/* Bytes that an identity has written into the database in one hour, for [limits] owner_bytes_per_day. */
struct store_spent {
	uint8_t who[32];
	uint64_t hour, bytes; /* hour: counted from the Unix epoch */
};

struct store_token {
	uint8_t id[8];
	uint8_t secret_hash[32];
	char role[16];
	char labels[STORE_LABELS_MAX];
	uint64_t uses, uses_left;
	double created_at, expires_at;
	bool revoked;
	bool access; /* a bearer token, not for joining */
	/* Of a device that joins with the token; "": the device chooses. */
	char name[64], name_prefix[64];
	bool suspended; /* devices that join with the token begin suspended */
	/* Access token: the name whose jobs and models the token works with; "": the token's own. */
	char owner[64];
	/* Access token: Unix seconds of the last use, 0 for never, and from where. Replacing a token, store_token_put leaves both. */
	double last_used;
	char last_address[64];
};

#define STORE_REASON_MAX 320 /* bytes with the zero: a whole `struct why` and a few words more */
struct store_job {
	uint8_t id[16];
	/* As submitted; valid during the call, or owned by the caller after a get (free it). */
	char *document;
	size_t document_len;
	enum job_state state;
	char reason[STORE_REASON_MAX];
	double created_at;
	uint8_t owner[32]; /* who submitted it (struct identity) */
	double ended_at; /* NaN: the job has not ended, or nobody knows when */
};

struct store_metric {
	bool known;
	uint64_t examples;
	double loss, accuracy; /* accuracy may be NaN */
};

struct store_round {
	uint8_t job[16];
	uint64_t round;
	enum round_outcome state;
	uint8_t base[32];
	uint8_t model[32]; /* valid unless open */
	uint8_t optimizer_state[32]; /* file hash; all zero if none */
	uint64_t reports, invited, aborted, reopened, goal;
	uint64_t examples, bytes_up, bytes_down;
	double loss, accuracy, norm; /* NaN where unknown */
	struct store_metric evaluate;
	/* The trainers' metric that the monitor names, over the devices; NaN: not known. */
	double eval_own;
	/* Round whose base `evaluate` and `eval_own` measured; 0: they measured this round's base or model. */
	uint64_t measured;
	double opened_at, closed_at;
	/* By clock_ms; 0: opened before this process began. Not stored in the row. */
	uint64_t opened_ms;
	char reason[128];
};

/* An accepted delta: unique on (job, round, device). */
struct store_accept {
	uint8_t job[16];
	uint64_t round; /* the round of the delta's task */
	uint8_t device[32];
	uint8_t task[16];
	uint8_t manifest[320];
	uint8_t receipt[160];
	char *report; /* JSON text or NULL; ownership as store_job.document */
	uint64_t body_bytes;
	double accepted_at;
	uint64_t folded; /* the round whose model the delta goes into */
};

/* How long a device's task took, written with the accepted delta; the last STORE_SPEEDS tasks of each device in each job are kept. */
#define STORE_SPEEDS 5
struct store_speed {
	uint8_t job[16], device[32];
	/* Counts the device's tasks in the job, from 0; given by store_speed_add. */
	uint64_t serial;
	uint64_t steps;
	double seconds; /* from sending the task to the first byte of the delta */
	double samples; /* examples trained on, counted each time they were used */
	uint64_t up_bytes; /* bytes of the delta's last transfer */
	double up_seconds; /* how long the last transfer took */
	double at; /* Unix seconds */
};

/* The number of steps that the coordinator gave a task, from how fast the device is. */
struct store_sized {
	uint8_t job[16];
	uint64_t round; /* of the task */
	uint8_t device[32];
	uint64_t steps;
	uint64_t oldest; /* store_sized_put deletes the job's rows of rounds before this one */
};

/* A task of a buffered job that a device holds: written before the task is sent, so that no more tasks are out than allowed after a
 * restart, too. */
struct store_out {
	uint8_t job[16], device[32];
	uint64_t round; /* of the task */
	double at; /* when the task was sent, Unix seconds */
};

struct store_model {
	uint8_t id[32];
	uint64_t bytes;
	uint8_t job[16]; /* zero for an uploaded model */
	uint64_t round; /* 0 for an initial model */
	double created_at;
	uint8_t owner[32]; /* who uploaded the model (struct identity); zero: not known */
};

#endif
