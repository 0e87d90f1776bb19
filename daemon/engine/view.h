#ifndef VIEW_H
#define VIEW_H
#include "best.h"
#include "device_status.h"
#include "forecast.h"
#include "job_list.h"
#include "stuck.h"

/*
 * What is shown of jobs: copies of plain values, made under the engine's lock a few jobs at a time, so that a list of thousands
 * keeps no round waiting. Who reads one holds no lock.
 */

/* The job's open round. */
struct open_view {
	const char *state; /* a constant word */
	bool evaluates; /* its base, and makes no model */
	bool is_central; /* it is folded, and a program of an evaluator measures what it has made */
	uint32_t reports, invited, goal, quorum, reopened;
	enum round_mode mode;
	uint32_t early; /* reports that the next round has already */
	uint32_t concurrency; /* of a buffered job */
	uint32_t max_staleness;
	uint64_t up_bytes;
	double opened_at_seconds; /* Unix time */
	double deadline_seconds; /* from now */
};

struct job_view {
	uint64_t read_bytes; /* of documents, to know whether a device may see it */
	uint8_t id[16], owner[32], model[32];
	char name[RECIPE_NAME_MAX];
	enum job_state state;
	char reason[STORE_REASON_MAX];
	bool only_evaluates;
	int64_t priority; /* in force, */
	uint32_t share; /* likewise; 0: it is over */
	uint64_t round, rounds_committed;
	uint64_t model_bytes, parameters;
	struct store_metric metric;
	uint64_t metric_round;
	char owner_name[64]; /* registry_owner_name; "": nobody's, or for a device */
	double created_at_seconds; /* Unix time */
	double ended_at_seconds; /* NaN: it is not over */
	bool for_device; /* a device asks: it learns no owner */
	struct device_status status; /* for no device; all zero of a job that is over */
	/* Why it cannot move, and since when, Unix time; for no device. */
	struct stuck stuck;
	double stuck_since;
	bool is_open, is_guarded; /* the two below say something */
	struct open_view open;
	struct guard_view guard;
	struct monitor_spec monitor;
	bool has_best; /* then: */
	struct best_point best;
	struct job_forecast forecast;
};

#endif
