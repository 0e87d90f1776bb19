#ifndef DEAL_H
#define DEAL_H
#include "data.h"
#include "population.h"

/*
 * The examples of a simulated fleet, of which each device's share is made when it is wanted: drawn digits by its own hand, or its part of
 * files that were read once. Memory: these files, and a share for each device that trains at a time.
 */
struct fleet_deal;

struct fleet_deal_options {
	const struct settings_data
	    *set; /* as devices have it; the simulator says which part is whose */
	const struct recipe *recipe;
	uint64_t job_seed;
	const struct fleet *fleet;
};

/* What is pointed to must outlive it. Reads files: blocks. ERR_INVALID for what does not fit job or fleet. */
ERR_MUST_USE enum err fleet_deal_open(
    struct fleet_deal **out, const struct fleet_deal_options *o, struct why *why);
void fleet_deal_close(struct fleet_deal *d);

struct fleet_hand {
	struct settings_data from; /* as this device's owner would have written it */
	struct dataset train, validation;
};
/* Any thread. */
ERR_MUST_USE enum err fleet_deal_draw(
    struct fleet_deal *d, size_t device, struct fleet_hand *out, struct why *why);
void fleet_deal_return(struct fleet_deal *d, struct fleet_hand *h);
/* How many examples the device trains on, without making them. */
ERR_MUST_USE enum err fleet_deal_count(
    struct fleet_deal *d, size_t device, uint64_t *out, struct why *why);

/* Test examples of other labels with the trigger and its label: the share "right" is a backdoor's success. ERR_INVALID if the set's form
 * bears no trigger. */
ERR_MUST_USE enum err fleet_deal_triggered(
    struct dataset *out, const struct dataset *test, struct why *why);

#endif
