#ifndef REPORT_H
#define REPORT_H
#include <stdint.h>

#include "abort_reason.h"
#include "codec.h"
#include "histogram.h"
#include "problem.h"
#include "states.h"
#include "wait_reason.h"

/*
 * What the coordinator counts, as plain structs: each part fills its struct under its own lock, and the code that shows it (JSON, tables)
 * holds no lock. Names carry their unit; `_total` counts since the start, every other member is as of now. Counts by state are updated
 * when a state changes, so that no report goes over a list.
 */
struct lock_report {
	struct histogram held_seconds; /* elapsed time that the lock was held */
	/* Most processor time that a holder used while it held the lock. */
	double held_cpu_seconds_max;
};

struct store_report {
	uint64_t commits_total;
	uint64_t works_total; /* work functions that ran, failed ones included */
	struct histogram commit_seconds; /* syncing the names of new files included */
};

struct registry_report {
	/* Numbers of devices: */
	uint64_t joined; /* all that are on record, */
	uint64_t by_state[DEVICE_LEFT + 1]; /* the same devices by enum device_state */
	uint64_t seen; /* last contact within REGISTRY_SEEN_SECONDS */
	/* Active or suspended, with a certificate of an older CA than the newest. */
	uint64_t not_renewed;
	uint64_t contested; /* suspended, because several keys claim to be the device's */
	uint64_t locked_out; /* active, with a certificate that was refused at the last contact */
	/* Devices by what they were told last about a job, a device once for each job (device_status.h). */
	uint64_t waiting[WAIT_UNKNOWN], gave_up[ABORT_UNKNOWN + 1];
};

struct spool_report {
	uint64_t used_bytes, quota_bytes; /* quota 0: no limit */
};

/* How a model, or what stands beside it, was sent. */
enum models_sent {
	SENT_WHOLE,
	SENT_DIFFERENCE, /* from another model */
	SENT_STATE,
	SENT_RANGE, /* a part: a download that goes on */
	SENT_KINDS,
};
struct models_report {
	uint64_t downloads_total[SENT_KINDS], download_bytes_total[SENT_KINDS];
};

/* Deltas of ended rounds that are kept (archive.h). */
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
	uint64_t jobs_lacking; /* paused jobs that wait for a file that is gone or damaged */
	/* A device's task of a round counts once, however often the device asks for it. */
	uint64_t tasks_total, tasks_aborted_total;
	uint64_t aborted[ABORT_UNKNOWN + 1]; /* tasks_aborted_total by enum abort_reason */
	/* Looks for a device's work: one as it asks, and one each time that its parked request is woken. */
	uint64_t task_asks_total;
	uint64_t changes_total; /* of jobs, as GET /v1/changes counts them */
	uint64_t readers; /* who wait for a change now */
	uint64_t readers_refused_total; /* for want of a place */
	uint64_t deltas_total, delta_bytes_total; /* accepted */
	/* The same by enum codec_id, with figures of models, which have no codec but f32. */
	uint64_t deltas[CODEC_IDS], delta_bytes[CODEC_IDS];
	struct histogram
	    staleness_rounds; /* of accepted deltas: rounds from the base's to the one that takes them */
	uint64_t rounds_committed_total, rounds_failed_total, rounds_reopened_total;
	struct histogram round_seconds; /* from the opening of a round to its model */
	struct histogram fold_seconds; /* from the first delta to the model's metric */
	struct histogram report_seconds; /* from a task that goes out to what it brings, accepted */
	struct histogram evaluation_seconds; /* of a model, here or by a program */
	struct lock_report lock;
};

/* Classes of HTTP status: 2xx to 5xx. */
#define SERVER_CLASSES 4
#define SERVER_ROUTES_MAX 95
/* What came of a handshake. */
enum server_handshake {
	HANDSHAKE_FULL,
	HANDSHAKE_RESUMED,
	HANDSHAKE_EXPIRED, /* with a certificate whose time is over, which renews itself and no more */
	HANDSHAKE_OTHER_CA, /* refused, as no CA of this coordinator has made the certificate */
	HANDSHAKE_FAILED, /* for another cause */
	HANDSHAKE_SILENT, /* the peer said nothing, as a probe of the port does */
	SERVER_HANDSHAKES,
};
struct server_report {
	uint64_t connections; /* open now */
	uint64_t connections_total;
	uint64_t handshakes[SERVER_HANDSHAKES];
	/* By the place in the table of routes, and the class; behind the last one what no route answered. */
	uint64_t responses[SERVER_ROUTES_MAX + 1][SERVER_CLASSES];
	uint64_t refusals[PROBLEM_UNKNOWN]; /* by enum problem_type */
	uint64_t received_bytes_total, sent_bytes_total; /* inside TLS */
};

struct health_report {
	enum wait_reason reason; /* WAIT_NONE: ready */
	char detail[256]; /* the system's words */
	double since_seconds; /* Unix time; 0 while ready */
	uint64_t failures_total; /* how often the coordinator ceased to be ready */
};

#endif
