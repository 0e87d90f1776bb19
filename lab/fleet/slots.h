#ifndef SLOTS_H
#define SLOTS_H
#include "companions.h"
#include "settings.h"
#include "spawner.h"
#include "trainer.h"

/*
 * Places where devices train, one at a time in each: with a trainer that is a program each has a home of its own and, if the program
 * stays, one that serves whichever device is there. Threads take and give back.
 */
struct fleet_slots;

struct fleet_slot {
	char home[PATH_MAX];
	struct nursery *nursery;
	struct spawner spawner;
	struct companions companions;
	struct settings_data
	    data; /* of the device that is there: a program that stays keeps seeing this one */
	bool programs; /* home and what follows it are there */
};

/* `programs`: homes and starters of programs are made, below a fresh directory; call it before there are threads then. settings must
 * outlive it. */
ERR_MUST_USE enum err fleet_slots_new(struct fleet_slots **out, const struct settings *settings,
    unsigned count, bool programs, struct why *why);
/* Programs that stay leave; the directory goes. */
void fleet_slots_free(struct fleet_slots *s);
/* Waits for a free one. */
struct fleet_slot *fleet_slots_take(struct fleet_slots *s);
void fleet_slots_give(struct fleet_slots *s, struct fleet_slot *slot);
/* A directory for what all share; "" without programs. */
const char *fleet_slots_scratch(const struct fleet_slots *s);

#endif
