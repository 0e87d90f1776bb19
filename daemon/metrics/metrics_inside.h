#ifndef METRICS_INSIDE_H
#define METRICS_INSIDE_H
#include "age.h"
#include "metrics.h"
#include "recipe.h"
#include "report.h"
#include "stuck.h"

struct job_view;

/* Inside of the room: what is copied (view.c, view_jobs.c, process.c), how it is named (table.c, labels.c), and how it is shown (print.c,
 * reports.c). */

/* A job's values. NaN: it has none now. */
struct metrics_job {
	unsigned rank; /* running jobs first */
	char id[33], name[RECIPE_NAME_MAX];
	enum job_state state;
	double ended_at; /* Unix time */
	uint64_t round, rounds_committed;
	double reports, goal, quorum, invited, reopened;
	double opened_at, deadline_at; /* Unix time */
	double loss, accuracy, metric_round;
	bool stuck; /* it cannot move, and nobody paused it */
	double stuck_since; /* Unix time */
};

struct metrics_process {
	double cpu_seconds, start_time; /* start_time: Unix time */
	double resident_bytes, virtual_bytes, open_fds, max_fds;
};

/* By the last look of program/watch; NaN before the first. */
struct metrics_disk {
	double free_bytes, total_bytes, need_bytes, models_bytes, database_bytes, lost_files,
	    lost_bytes;
};

#define METRICS_ROUTE_BYTES 64
struct metrics_view {
	struct engine_report engine;
	struct store_report store;
	struct registry_report registry;
	struct spool_report spool;
	struct archive_report archive;
	struct models_report models;
	struct server_report server;
	struct health_report health;
	struct age_report age;
	struct metrics_process process;
	struct metrics_disk disk;
	uint64_t stuck[STUCK_KINDS];
	bool ready;
	enum wait_reason unready;
	uint64_t reserve_bytes, reserve_wanted, log_skipped, incarnation, ca_generation;
	bool ca_rotating, clock_doubted;
	double certificate_ends, ca_ends; /* Unix time */
	/* Sums that /v1/status has. */
	uint64_t handshakes_total, handshakes_failed_total, by_class[SERVER_CLASSES];
	/* The words of the routes, and behind them "none". */
	size_t route_count;
	char routes[SERVER_ROUTES_MAX + 1][METRICS_ROUTE_BYTES];
	size_t job_count;
	struct metrics_job jobs[METRICS_JOBS];
	uint64_t jobs_omitted;
};

/* Fills all but process and jobs. */
void metrics_view_read(struct metrics_view *v, const struct services *s);
/* Puts a job in its place, or leaves it out. */
void metrics_view_job(struct metrics_view *v, const struct job_view *job);
ERR_MUST_USE enum err metrics_view_jobs(struct metrics_view *v, const struct services *s);
void metrics_view_process(struct metrics_view *v, const struct services *s);

/* A label with a closed set of values: the words [first, end), by the index of an array of `end` items. */
struct metrics_label {
	const char *name;
	unsigned first, end;
	/* NULL: the word is left out, and its series. */
	const char *(*word)(const struct metrics_view *v, unsigned i);
};

enum metrics_type { METRICS_COUNTER, METRICS_GAUGE, METRICS_HISTOGRAM };
/* How the value at a row's place is read. */
enum metrics_value {
	METRICS_U64,
	METRICS_DOUBLE,
	METRICS_BOOL,
	METRICS_ENUM, /* a series for each word of the first label: 1 for the present one, 0 for the others */
	METRICS_BUCKETS, /* a struct histogram */
	METRICS_INFO, /* 1, with `info` */
};
#define METRICS_LABELS 2
struct metrics_row {
	const char *name; /* NULL: only in /v1/status */
	enum metrics_type type;
	enum metrics_value value;
	bool of_jobs; /* a series for each job; `at` counts from struct metrics_job */
	size_t at; /* of the value, or of an array by the labels */
	const struct metrics_label *labels[METRICS_LABELS];
	/* Where "reports" of /v1/status has it: PART.NAME; PART.NAME.* and PART.*: by the words of the last label. NULL: nowhere. */
	const char *report;
	enum histogram_scale scale;
	/* Labels of METRICS_INFO, printed with the comma in front, if the row is one of jobs. */
	enum err (*info)(
	    struct buf *out, const struct metrics_view *v, const struct metrics_job *j);
	const char *help;
};
extern const struct metrics_row metrics_rows[];
size_t metrics_rows_count(void);
/* The value of a row; at: indexes of its labels. */
double metrics_value_read(
    const struct metrics_row *row, const void *base, const unsigned at[METRICS_LABELS]);
const struct histogram *metrics_histogram(
    const struct metrics_row *row, const struct metrics_view *v);
/* A label's value, with what the format wants escaped. */
enum err metrics_print_text(struct buf *out, const char *text);

extern const struct metrics_label metrics_label_route, metrics_label_class, metrics_label_error,
    metrics_label_handshake, metrics_label_device_state, metrics_label_job_state,
    metrics_label_wait, metrics_label_unready, metrics_label_abort, metrics_label_stuck,
    metrics_label_codec, metrics_label_source, metrics_label_doubt;

#endif
