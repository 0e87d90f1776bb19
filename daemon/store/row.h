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
	uint64_t ca_generation; /* of the CA of the newest certificate it has used */
	double rotations_at; /* Unix time: from then on its rotations count as none */
	double key_at; /* Unix time: its key is its own since then or before; 0: nobody knows */
	double restored_key_at; /* that of the backup that this state came from */
	enum device_claim claim; /* since then; CLAIM_UNKNOWN is written as CLAIM_NONE */
};

/* A key that claims to be a device's by a certificate, in a state that was restored from a backup. */
struct store_claim {
	uint8_t device[32], spki[91];
	double issued_at; /* of the certificate, Unix seconds */
};

/* What a device was last heard to say. Texts are "" and numbers NaN where nothing is known. */
struct store_seen {
	uint8_t device[32];
	double last_contact; /* Unix seconds */
	char agent[32];
	char reason[64]; /* why it was last told to wait, or refused; "" when it was given work */
	char refused[32]; /* the last error word it was answered, */
	double refused_at; /* and when */
	char aborted[32]; /* why it last gave up a task, */
	double aborted_at; /* and when */
	double clock_offset; /* its clock minus ours, seconds */
	double disk_free; /* bytes */
	uint8_t machine[32]; /* the machine it was last seen on; zero if it did not say */
	uint8_t other_machine[32]; /* another one its key was seen on; zero if none */
};

/* What an identity has written into the database in one hour since 1970: [limits] owner_bytes_per_day. */
struct store_spent {
	uint8_t who[32];
	uint64_t hour, bytes;
};

struct store_token {
	uint8_t id[8];
	uint8_t secret_hash[32];
	char role[16];
	char labels[STORE_LABELS_MAX];
	uint64_t uses, uses_left;
	double created_at, expires_at;
	bool revoked;
	bool access; /* a bearer token for readers and submitters, not for joining */
	char name[64], name_prefix[64]; /* of who joins with it; "": its own choice */
	char owner[64]; /* of an access token: whose jobs and models its are; "": its own */
	double
	    last_used; /* an access token; 0: never. store_token_put leaves these two of a token that is there */
	char last_address[64];
};

#define STORE_REASON_MAX 320 /* of a job, with its end: a whole `struct why` with a few words */
struct store_job {
	uint8_t id[16];
	/* As submitted; valid during the call, or owned by the caller after a get (free it). */
	char *document;
	size_t document_len;
	enum job_state state;
	char reason[STORE_REASON_MAX];
	double created_at;
	uint8_t owner[32]; /* who submitted it (struct identity) */
	double ended_at; /* NaN: it is not over */
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
	double eval_own; /* the monitor's own metric, over its devices; NaN: not known */
	uint64_t
	    measured; /* the round whose base both are of; 0: they are of this round's base or model */
	double opened_at, closed_at;
	uint64_t opened_ms; /* by clock_ms; 0: not in this life. In no row */
	char reason[128];
};

/* An accepted delta: unique on (job, round, device). */
struct store_accept {
	uint8_t job[16];
	uint64_t round; /* of its task */
	uint8_t device[32];
	uint8_t task[16];
	uint8_t manifest[320];
	uint8_t receipt[160];
	char *report; /* JSON text or NULL; ownership as store_job.document */
	uint64_t body_bytes;
	double accepted_at;
	uint64_t folded; /* the round that it goes into */
};

/* How long a device's task took: of each job the last few, written with the accepted delta. */
#define STORE_SPEEDS 5
struct store_speed {
	uint8_t job[16], device[32];
	uint64_t serial; /* of the device in the job, from 0 */
	uint64_t steps;
	double seconds; /* from the task to the first byte of its delta */
	double samples; /* examples worked on: each as often as it came up */
	uint64_t up_bytes; /* of the delta's last transfer, */
	double up_seconds; /* and how long that took */
	double at; /* Unix seconds */
};

/* How many steps a task has that the coordinator sized. */
struct store_sized {
	uint8_t job[16];
	uint64_t round; /* of the task */
	uint8_t device[32];
	uint64_t steps;
	uint64_t oldest; /* for store_sized_put: rows of the job's rounds before it go */
};

/* The task of a buffered job that a device has: written before it goes out, so that after a restart no more are out than may be. */
struct store_out {
	uint8_t job[16], device[32];
	uint64_t round; /* of the task */
	double at; /* when it went out, Unix seconds */
};

struct store_model {
	uint8_t id[32];
	uint64_t bytes;
	uint8_t job[16]; /* zero for an uploaded model */
	uint64_t round; /* 0 for an initial model */
	double created_at;
	uint8_t owner[32]; /* who uploaded it, as of a job */
};

#endif
