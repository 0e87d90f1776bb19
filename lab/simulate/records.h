#ifndef RECORDS_H
#define RECORDS_H
#include "history.h"

struct fleet_profiles;

/* The rounds of one job from a coordinator's records: a directory that `rivulet verify fetch` made, checked as `rivulet verify` checks it.
 * Blocks on the disk. */

/* A delta that went into a round. */
struct simulate_entry {
	uint8_t device[32], base[32];
	uint64_t round; /* of the delta's task */
	uint64_t steps, examples;
	bool partial; /* the device did only part of its work */
};

struct simulate_record {
	uint64_t round;
	bool committed; /* false: failed */
	uint8_t model[32];
	struct cmd_verify_terms terms;
	struct job_stamp stamp;
	struct simulate_entry *entries; /* in the order of the fold */
	size_t count;
};

struct simulate_records {
	uint8_t job[16];
	struct simulate_record *items; /* by round */
	size_t count, room;
	struct cmd_verify_history history; /* keys and names of the devices */
};

/* The caller calls simulate_records_deinit in either case. ERR_CORRUPT: the records are wrong; ERR_NOTFOUND: they have nothing of this job,
 * or manifests are erased. */
ERR_MUST_USE enum err simulate_records_read(
    struct simulate_records *out, const char *dir, const uint8_t job[16], struct why *why);
void simulate_records_deinit(struct simulate_records *r);
/* Gives the devices of a fleet that have names and no ids the ids that the records know by these names. ERR_NOTFOUND. */
ERR_MUST_USE enum err simulate_records_name(
    const struct simulate_records *r, struct fleet_profiles *profiles, struct why *why);

#endif
