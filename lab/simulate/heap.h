#ifndef HEAP_H
#define HEAP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/*
 * The events of a simulation that are still to happen, in the order of time, then of kind, then of the device's index. Pure.
 */
enum simulate_kind {
	SIMULATE_DELIVERS, /* a device's delta arrives */
	SIMULATE_GIVES_UP, /* a device gives its task up */
	SIMULATE_EXPIRES, /* a task has been out for too long */
	SIMULATE_HOUR, /* devices have come and gone */
};

struct simulate_event {
	uint64_t us;
	enum simulate_kind kind;
	size_t device;
	void *subject; /* set and used by the caller */
};

struct simulate_heap {
	struct simulate_event *items;
	size_t count, room;
};

/* Adds an event; a zeroed heap is empty. ERR_NOMEM. */
ERR_MUST_USE enum err simulate_heap_add(struct simulate_heap *h, const struct simulate_event *e);
/* Takes the first event out; false if there is none. */
bool simulate_heap_take(struct simulate_heap *h, struct simulate_event *out);
/* The time of the first event; UINT64_MAX if there is none. */
uint64_t simulate_heap_next(const struct simulate_heap *h);
void simulate_heap_deinit(struct simulate_heap *h);

#endif
