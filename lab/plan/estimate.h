#ifndef ESTIMATE_H
#define ESTIMATE_H
#include "footprint.h"
#include "forecast.h"
#include "json.h"
#include "known.h"
#include "planning.h"
#include "playout.h"

/*
 * What a job will cost, before it is submitted: bytes, memory, disk, time. For `rivulet job plan` and `job submit --dry-run`;
 * docs/simulate.md says how the cost is counted.
 */
#define PLAN_PROBLEMS_MAX 8
#define PLAN_PROBLEM_TEXT 320

/* Processor time of the coordinator, in seconds, roughly: of one round, of the whole job. */
struct plan_cpu {
	double round, job;
};

struct plan_estimate {
	struct job_spec job;
	uint64_t parameters; /* parameters that devices send and fetch */
	bool exists; /* the job was submitted already, and `disk` is for the rest of it */
	uint64_t devices; /* devices that can take part */
	uint64_t examples; /* of the device that `footprint` is for: the median one */
	bool is_known; /* the devices are those of the coordinator, and `known` is set */
	struct plan_known known;
	bool assumed; /* the devices are assumed, all equal: fleet_profiles_like */
	bool has_times; /* the speed of at least one device is known */
	struct footprint_bytes bytes;
	/* Bytes of the difference that a device with the last model fetches in place of a model; 0: there is none. */
	uint64_t difference;
	struct footprint footprint;
	struct job_forecast disk;
	bool disk_fits;
	struct plan_playout playout;
	struct plan_cpu cpu;
	/* The coordinator's part of a round's time: closing, folding, handing out. */
	double between_seconds;
	char problems[PLAN_PROBLEMS_MAX][PLAN_PROBLEM_TEXT]; /* why the job cannot run */
	size_t problem_count;
	/* Texts, from the coordinator or from the document alone; NULL: none. */
	struct json *warnings;
};

/* The caller calls plan_estimate_deinit in either case. A job that cannot run is no error, but has problems. */
ERR_MUST_USE enum err plan_estimate(
    struct plan_estimate *out, const struct plan_want *want, struct why *why);
void plan_estimate_deinit(struct plan_estimate *e);

#endif
