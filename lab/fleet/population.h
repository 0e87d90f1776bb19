#ifndef POPULATION_H
#define POPULATION_H
#include "profile.h"

/*
 * The devices of a simulated fleet: who they are, how fast, when they are there. All of it follows from the profiles and a seed, so
 * nothing is kept of a device but its id and its profile. Times are microseconds of the simulation's clock. Pure.
 */
#define FLEET_PERIOD_US UINT64_C(3600000000) /* a device is there or away for whole hours */

struct fleet_device {
	uint8_t id[32];
	uint32_t number; /* its place in the table, from 0 */
	uint32_t profile;
};

struct fleet {
	struct fleet_device *devices; /* ascending ids */
	size_t count;
	struct fleet_profiles profiles;
	double sigma; /* speeds are multiplied by exp(sigma x normal) */
	uint64_t seed;
	bool comes_and_goes; /* some are away at times */
};

/* Ids are those of the table, else SHA-256("simulated device N") with N from 1. Takes *profiles over, also on failure. ERR_NOMEM;
 * ERR_INVALID for an id that stands there twice. fleet_deinit in either case. */
ERR_MUST_USE enum err fleet_init(
    struct fleet *f, struct fleet_profiles *profiles, double sigma, uint64_t seed, struct why *why);
void fleet_deinit(struct fleet *f);
const struct fleet_profile *fleet_profile_of(const struct fleet *f, size_t device);
/* Its place by id; SIZE_MAX if there is no such device. */
size_t fleet_find(const struct fleet *f, const uint8_t id[32]);

/* Examples a second; 0: training takes no time. */
double fleet_speed(const struct fleet *f, size_t device);
bool fleet_is_there(const struct fleet *f, size_t device, uint64_t us);
/* `us`, or when it is back. */
uint64_t fleet_back(const struct fleet *f, size_t device, uint64_t us);

struct fleet_work {
	uint64_t bytes_down, bytes_up;
	double samples; /* examples that training goes through */
};
/* How long the device takes for its parts: until it has the model, until it has trained, until its delta has arrived. */
struct fleet_times {
	uint64_t fetch_us, train_us, send_us;
};
struct fleet_times fleet_times(const struct fleet *f, size_t device, const struct fleet_work *w);
/* Does it give up this task, its nth? Then *share of the training is done before. */
bool fleet_fails(const struct fleet *f, size_t device, uint64_t nth, double *share);

#endif
