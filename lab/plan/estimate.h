#ifndef ESTIMATE_H
#define ESTIMATE_H
#include "footprint.h"
#include "forecast.h"
#include "json.h"
#include "known.h"
#include "planning.h"
#include "playout.h"

/*
 * What a job will cost, before it is submitted: bytes, memory, disk, time. `rivulet job plan`, `job submit --dry-run`; docs/simulate.md
 * says how it is counted.
 */
#define PLAN_PROBLEMS_MAX 8
#define PLAN_PROBLEM_TEXT 320

/* Processor time of the coordinator, in seconds; about. */
struct plan_cpu {
	double round, job;
};

struct plan_estimate {
	struct job_spec job;
	uint64_t parameters; /* that travel */
	bool exists; /* it is a job already, and disk what is left of that */
	uint64_t devices; /* that can take part */
	uint64_t examples; /* of the device whose memory this is: the one in the middle */
	bool is_known; /* the coordinator's own devices: */
	struct plan_known known;
	bool assumed; /* devices all alike, as fleet_profiles_like makes them */
	bool has_times; /* at least one is known to be so fast */
	struct footprint_bytes bytes;
	uint64_t
	    difference; /* fetched in place of a model by who has the last one; 0: there is none */
	struct footprint footprint;
	struct job_forecast disk;
	bool disk_fits;
	struct plan_playout playout;
	struct plan_cpu cpu;
	double
	    between_seconds; /* that the coordinator adds to a round's time: closing, folding, handing out */
	char problems[PLAN_PROBLEMS_MAX][PLAN_PROBLEM_TEXT]; /* why it cannot run */
	size_t problem_count;
	struct json *warnings; /* texts, the coordinator's, or of the document alone; NULL: none */
};

/* plan_estimate_deinit in either case. A job that cannot run is no error. */
ERR_MUST_USE enum err plan_estimate(
    struct plan_estimate *out, const struct plan_want *want, struct why *why);
void plan_estimate_deinit(struct plan_estimate *e);

#endif
