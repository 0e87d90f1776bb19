#ifndef PROFILE_H
#define PROFILE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attack.h"
#include "err.h"

/*
 * The profiles of the devices of a simulated fleet: a table in CSV (docs/simulate.md), one line for several equal devices, or for one
 * device. Only fleet_profiles_load does I/O.
 */
#define FLEET_DEVICES_MAX 1000000u
#define FLEET_TEXT_MAX ((size_t)128 << 20)
#define FLEET_LINE_MAX 1024
#define FLEET_NAME_MAX 64
#define FLEET_RATE_MAX 1e15
#define FLEET_EXAMPLES_MAX 100000000u
#define FLEET_AVAILABLE_MIN 0.001
#define FLEET_FAILURE_MAX 0.999

struct fleet_profile {
	char name[FLEET_NAME_MAX];
	uint64_t count; /* devices with this profile, at least 1 */
	bool has_id; /* count is 1, and id is set */
	uint8_t id[32];
	double samples_per_s; /* examples trained on in a second; 0: training takes no time */
	double up_bytes_per_s, down_bytes_per_s; /* 0: sending or fetching takes no time */
	double latency_s; /* of a request */
	double available; /* share of the time that a device is available, above 0, at most 1 */
	double failure; /* share of its tasks that a device gives up, below 1 */
	uint64_t examples; /* of a device; 0: as the data says */
	enum fleet_attack attack; /* FLEET_HONEST: none */
	double strength;
};

struct fleet_profiles {
	struct fleet_profile *items;
	size_t count;
	uint64_t devices; /* of all profiles, at most FLEET_DEVICES_MAX */
};

/* One profile for `count` devices, with the speed and the network connection of the constants here. ERR_NOMEM. */
#define FLEET_LIKE_SAMPLES_PER_S 1000.0
#define FLEET_LIKE_UP_BYTES_PER_S 1e6
#define FLEET_LIKE_DOWN_BYTES_PER_S 4e6
#define FLEET_LIKE_LATENCY_S 0.05
ERR_MUST_USE enum err fleet_profiles_like(struct fleet_profiles *out, uint64_t count);
/* Parses a table; errors begin with `name` and say line and column. ERR_INVALID, ERR_LIMIT, ERR_NOMEM. The caller ends *out with
 * fleet_profiles_deinit, also after a failure. */
ERR_MUST_USE enum err fleet_profiles_parse(
    struct fleet_profiles *out, const char *name, const char *text, size_t len, struct why *why);
/* fleet_profiles_parse of a file. Blocks on the disk. */
ERR_MUST_USE enum err fleet_profiles_load(
    struct fleet_profiles *out, const char *path, struct why *why);
void fleet_profiles_deinit(struct fleet_profiles *p);

#endif
