#ifndef KNOWN_H
#define KNOWN_H
#include "job.h"
#include "profile.h"

struct cmd_admin;

/* A coordinator's devices, as the coordinator has seen them. Calls block on the network. */
#define PLAN_MEASURED_MAX 3
struct plan_known {
	/* The jobs in which devices' speeds were measured, jobs with most devices first; name "" if this user may not see the job. */
	struct plan_measured {
		char job[33], name[RECIPE_NAME_MAX];
		uint64_t devices;
	} measured_in[PLAN_MEASURED_MAX];
	size_t measured_jobs; /* number of such jobs; may be more than PLAN_MEASURED_MAX */
	uint64_t devices; /* active devices */
	uint64_t with_data; /* active devices with enough examples in the job's data set */
	/* Devices of with_data with more examples than the job lets them claim: whose agents draw no share; whose agents do. */
	uint64_t too_many;
	uint64_t drawn;
	uint64_t with_memory; /* devices of with_data, without too_many, that have the memory */
	uint64_t measured; /* devices of with_memory whose speed is known */
	/* The devices of with_memory; a device that was not measured gets the median speed of the others. */
	struct fleet_profiles fleet;
};

/* The memory of a device that a task takes: so many bytes, and per_example more for each example. */
struct plan_need {
	double bytes, per_example;
	uint64_t max_examples; /* the most that a device may claim */
};
/* A device that does not say how much memory it has is assumed to have enough; an impossible number counts as none. ERR_UNSUPPORTED: the
 * coordinator is too old. The caller calls plan_known_deinit in either case. */
ERR_MUST_USE enum err plan_known_fleet(struct plan_known *out, struct cmd_admin *a,
    const struct recipe *recipe, const struct plan_need *need, struct why *why);
void plan_known_deinit(struct plan_known *k);

#endif
