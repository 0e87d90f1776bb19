#ifndef DEAL_H
#define DEAL_H
#include "data.h"
#include "population.h"

/*
 * The examples of a simulated fleet; each device's share is made when it is needed: digits drawn in the device's own hand, or the device's
 * part of files that were read once. Memory: the files, and the shares of the devices that train at the same time.
 */
struct fleet_deal;

struct fleet_deal_options {
	/* The [data] section that devices have; the simulator sets the part of each device. */
	const struct settings_data *set;
	const struct recipe *recipe;
	uint64_t job_seed;
	const struct fleet *fleet;
};

/* All pointers in *o must outlive *out. Reads files: blocks. ERR_INVALID if the data do not fit job or fleet. */
ERR_MUST_USE enum err fleet_deal_open(
    struct fleet_deal **out, const struct fleet_deal_options *o, struct why *why);
void fleet_deal_close(struct fleet_deal *d);

struct fleet_hand {
	/* The [data] section as this device's owner would have written it. */
	struct settings_data from;
	struct dataset train, validation;
};
/* *out: the device's share, until fleet_deal_return. Any thread. */
ERR_MUST_USE enum err fleet_deal_draw(
    struct fleet_deal *d, size_t device, struct fleet_hand *out, struct why *why);
void fleet_deal_return(struct fleet_deal *d, struct fleet_hand *h);
/* *out: how many examples the device trains on; makes no examples. */
ERR_MUST_USE enum err fleet_deal_count(
    struct fleet_deal *d, size_t device, uint64_t *out, struct why *why);

/* *out: the test examples that have another label than the backdoor's, with the trigger and that label, so that the accuracy on *out is the
 * backdoor's success. ERR_INVALID if examples of this form cannot have the trigger. */
ERR_MUST_USE enum err fleet_deal_triggered(
    struct dataset *out, const struct dataset *test, struct why *why);

#endif
