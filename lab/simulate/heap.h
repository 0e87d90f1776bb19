#ifndef HEAP_H
#define HEAP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/*
 * The simulation's clock: what is to happen, in the order of time, then of kind, then of the device's place by id. Pure.
 */
enum simulate_kind {
	SIMULATE_DELIVERS, /* a device's delta arrives */
	SIMULATE_GIVES_UP,
	SIMULATE_EXPIRES, /* a task has been out for too long */
	SIMULATE_HOUR, /* devices have come and gone */
};

struct simulate_event {
	uint64_t us;
	enum simulate_kind kind;
	size_t device;
	void *subject; /* the caller's */
};

struct simulate_heap {
	struct simulate_event *items;
	size_t count, room;
};

/* Zeros are an empty one. ERR_NOMEM. */
ERR_MUST_USE enum err simulate_heap_add(struct simulate_heap *h, const struct simulate_event *e);
/* Takes out what is first; false if there is nothing. */
bool simulate_heap_take(struct simulate_heap *h, struct simulate_event *out);
/* When that is; UINT64_MAX if there is nothing. */
uint64_t simulate_heap_next(const struct simulate_heap *h);
void simulate_heap_deinit(struct simulate_heap *h);

#endif
