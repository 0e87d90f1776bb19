#ifndef KNOWN_H
#define KNOWN_H
#include "job.h"
#include "profile.h"

struct cmd_admin;

/* A coordinator's devices, as it has seen them. Calls block on the network. */
#define PLAN_MEASURED_MAX 3
struct plan_known {
	/* In which jobs devices were measured, those with most of them first; of the first few the names, "" where nobody may see the job. */
	struct plan_measured {
		char job[33], name[RECIPE_NAME_MAX];
		uint64_t devices;
	} measured_in[PLAN_MEASURED_MAX];
	size_t measured_jobs; /* more than PLAN_MEASURED_MAX perhaps */
	uint64_t devices; /* active ones, */
	uint64_t with_data; /* that offered the job's data set with as many examples as it wants, */
	uint64_t
	    too_many; /* of these: more than the job lets them claim, and agents that draw no share, */
	uint64_t drawn; /* or that do */
	uint64_t with_memory; /* the others that have the memory for it */
	uint64_t measured; /* of these: how fast they are is known */
	struct fleet_profiles
	    fleet; /* those with memory; the speed of those that were not measured is the others' median */
};

/* What a task takes of a device's memory. */
struct plan_need {
	double bytes, per_example;
	uint64_t max_examples; /* that a device may claim */
};
/* Devices that do not say how much memory they have are taken to have enough; a number that cannot be is taken for none. ERR_UNSUPPORTED:
 * an older coordinator. plan_known_deinit in either case. */
ERR_MUST_USE enum err plan_known_fleet(struct plan_known *out, struct cmd_admin *a,
    const struct recipe *recipe, const struct plan_need *need, struct why *why);
void plan_known_deinit(struct plan_known *k);

#endif
