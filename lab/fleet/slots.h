#ifndef SLOTS_H
#define SLOTS_H
#include "companions.h"
#include "settings.h"
#include "spawner.h"
#include "trainer.h"

/*
 * Slots in which devices of a simulated fleet train, one at a time in each. With a trainer that is a program, each slot has a home and, if
 * the program is persistent, a program that serves whichever device is in the slot. Threads take slots and give them back.
 */
struct fleet_slots;

struct fleet_slot {
	char home[PATH_MAX];
	struct spawner_pool *pool;
	struct spawner spawner;
	struct companions companions;
	/* Of the slot's device: a persistent program keeps this pointer. */
	struct settings_data data;
	bool programs; /* the members above are set */
};

/* programs: makes homes and spawners, below a new directory; then call it before there are threads. settings must outlive *out. */
ERR_MUST_USE enum err fleet_slots_new(struct fleet_slots **out, const struct settings *settings,
    unsigned count, bool programs, struct why *why);
/* Has persistent programs leave, and removes the directory. */
void fleet_slots_free(struct fleet_slots *s);
/* Takes a slot; waits until one is free. */
struct fleet_slot *fleet_slots_take(struct fleet_slots *s);
void fleet_slots_give(struct fleet_slots *s, struct fleet_slot *slot);
/* A directory that all slots share; "" without programs. */
const char *fleet_slots_scratch(const struct fleet_slots *s);

#endif
