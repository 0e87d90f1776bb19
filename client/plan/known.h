#ifndef KNOWN_H
#define KNOWN_H
#include "admin.h"
#include "job.h"
#include "profile.h"

/* What a coordinator says of a document and of its devices, before there is a job. Calls block on the network. */
struct plan_known {
	uint64_t devices; /* active ones, */
	uint64_t with_data; /* that offered the job's data set with as many examples as it wants, */
	uint64_t with_memory; /* and have the memory for it */
	uint64_t measured; /* of these: how fast they are is known */
	struct fleet_profiles
	    fleet; /* those with memory; the speed of those that were not measured is the others' median */
};

/* memory: what a task takes. Devices that do not say how much they have are taken to have it. ERR_UNSUPPORTED: an older coordinator.
 * plan_known_deinit in either case. */
ERR_MUST_USE enum err plan_known_fleet(struct plan_known *out, struct cmd_admin *a,
    const struct data_spec *data, uint64_t memory, struct why *why);
void plan_known_deinit(struct plan_known *k);

/* Has the coordinator check the document as at submission; the caller frees *trial. */
ERR_MUST_USE enum err plan_known_try(
    struct cmd_admin *a, const char *text, size_t len, struct json **trial, struct why *why);
/* Fetches a model into a file that is there and empty. */
ERR_MUST_USE enum err plan_known_model(
    struct cmd_admin *a, const char *id, int fd, struct why *why);

#endif
