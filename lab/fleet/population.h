#ifndef POPULATION_H
#define POPULATION_H
#include "profile.h"

/*
 * The devices of a simulated fleet: their ids, how fast they are, when they are available. All follows from the profiles and a seed, so
 * only id and profile of a device are kept. Times are microseconds of the simulation's clock. Pure.
 */
#define FLEET_PERIOD_US UINT64_C(3600000000) /* a device is available or away for whole hours */

struct fleet_device {
	uint8_t id[32];
	uint32_t number; /* the device's place in the table of profiles, from 0 */
	uint32_t profile;
};

struct fleet {
	struct fleet_device *devices; /* ascending ids */
	size_t count;
	struct fleet_profiles profiles;
	double sigma; /* speeds are multiplied by exp(sigma x normal) */
	uint64_t seed;
	bool comes_and_goes; /* some devices are away at times */
};

/* A device's id is that of the table, else SHA-256("simulated device N") with N from 1. Takes *profiles over, also on failure. ERR_NOMEM;
 * ERR_INVALID for an id that the table has twice. The caller calls fleet_deinit in either case. */
ERR_MUST_USE enum err fleet_init(
    struct fleet *f, struct fleet_profiles *profiles, double sigma, uint64_t seed, struct why *why);
void fleet_deinit(struct fleet *f);
const struct fleet_profile *fleet_profile_of(const struct fleet *f, size_t device);
/* The index of the device with this id; SIZE_MAX if there is none. */
size_t fleet_find(const struct fleet *f, const uint8_t id[32]);

/* The device's speed in examples a second; 0: training takes no time. */
double fleet_speed(const struct fleet *f, size_t device);
bool fleet_is_there(const struct fleet *f, size_t device, uint64_t us);
/* When the device is available next: `us`, or when it is back. */
uint64_t fleet_back(const struct fleet *f, size_t device, uint64_t us);

struct fleet_work {
	uint64_t bytes_down, bytes_up;
	double samples; /* examples that the training goes through, each time counted */
};
/* How long the device takes for the parts of a task: to fetch the model, to train, to send the delta. */
struct fleet_times {
	uint64_t fetch_us, train_us, send_us;
};
struct fleet_times fleet_times(const struct fleet *f, size_t device, const struct fleet_work *w);
/* Does the device give up its nth task? Then *share of the training is done before. */
bool fleet_fails(const struct fleet *f, size_t device, uint64_t nth, double *share);

#endif
