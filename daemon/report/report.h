#ifndef REPORT_H
#define REPORT_H
#include <stdint.h>

#include "histogram.h"
#include "states.h"
#include "wait_reason.h"

/*
 * What the coordinator counts, as plain structs: each part fills its own under its own lock, and whoever shows them (JSON, tables)
 * does so outside of all locks. Names carry their unit; `_total` counts since the start, all else is as of now. What is counted
 * by state is kept as it changes, so that no report goes over a list.
 */
struct lock_report {
	struct histogram held_seconds; /* by the clock on the wall */
	double held_cpu_seconds_max; /* processor time that its holder used meanwhile */
};

struct store_report {
	uint64_t commits_total;
	uint64_t works_total; /* pieces of work in them, and those that failed */
	struct histogram commit_seconds; /* syncing the names of new files included */
};

struct registry_report {
	uint64_t joined; /* all that ever did, */
	uint64_t by_state[DEVICE_LEFT + 1]; /* and by enum device_state */
	uint64_t seen; /* within the last REGISTRY_SEEN_SECONDS */
	/* Active or suspended, and the certificate is of an older CA than the newest. */
	uint64_t not_renewed;
	uint64_t contested; /* suspended, for several keys claim to be theirs */
	uint64_t locked_out; /* active, and the certificate was refused when it was heard of last */
};

struct spool_report {
	uint64_t used_bytes, quota_bytes; /* quota 0: no limit */
};

/* Deltas of rounds that are over. */
struct archive_report {
	uint64_t deltas;
	uint64_t used_bytes;
};

/* Models and deltas that no row explains. */
struct lost_report {
	uint64_t files;
	uint64_t bytes;
};

struct engine_report {
	uint64_t jobs[JOB_STOPPED + 1]; /* by enum job_state */
	uint64_t jobs_lacking; /* of those paused: wait for a file that is gone or damaged */
	uint64_t tasks_total,
	    tasks_aborted_total; /* a device's of a round is one, however often it asks */
	uint64_t deltas_total, delta_bytes_total; /* accepted */
	uint64_t rounds_committed_total, rounds_failed_total, rounds_reopened_total;
	struct histogram round_seconds; /* from its opening to its model */
	struct histogram fold_seconds; /* from the first delta to the model's metric */
	struct lock_report lock;
};

/* By the hundreds of the status: 2xx to 5xx. */
#define SERVER_CLASSES 4
struct server_report {
	uint64_t connections; /* open now */
	uint64_t connections_total;
	uint64_t handshakes_total, handshakes_failed_total;
	uint64_t responses_total[SERVER_CLASSES];
	uint64_t received_bytes_total, sent_bytes_total; /* inside TLS */
};

struct health_report {
	enum wait_reason reason; /* WAIT_NONE: ready */
	char detail[256]; /* the system's words */
	double since_seconds; /* Unix time; 0 while ready */
	uint64_t failures_total; /* how often it ceased to be ready */
};

#endif
