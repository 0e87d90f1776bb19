#ifndef SHARE_ORDER_H
#define SHARE_ORDER_H
#include <stdbool.h>
#include <stddef.h>

#include "share.h"

/*
 * The order in which jobs are asked for a device's work: by priority, inside one the least used for its share first, of those the
 * oldest. An array, so that a member moves in it with two searches and one short move of memory, however many there are. One thread
 * at a time; members are the caller's and stay where they are while they are in it.
 */
#define SHARE_ORDER_MAX 5120

struct share_place {
	int64_t priority;
	double key;
	uint64_t serial; /* of the oldest the least; no two members have the same */
};

struct share_member {
	struct share_use use;
	int64_t priority; /* the highest first */
	uint32_t share; /* >= 1 */
	uint64_t serial;
	bool waits; /* takes no tasks now: nobody is measured by it */
	bool is_in; /* what follows is the order's own */
	struct share_place at;
};

struct share_order {
	struct share_member *items[SHARE_ORDER_MAX];
	size_t count;
};

/* False if it is full. */
bool share_order_add(struct share_order *o, struct share_member *m);
/* Harmless for one that is not in it. */
void share_order_remove(struct share_order *o, struct share_member *m);
/* Use, share or priority have changed. Harmless for one that is not in it. */
void share_order_move(struct share_order *o, struct share_member *m);
/* Puts the use of one that comes new, or back, up to the least of those of its priority that devices have worked for in the last
 * half-life. (What nobody can work for stays at the use that it had long ago, and is no measure.) */
void share_order_raise(struct share_order *o, struct share_member *m, uint64_t now_ms);
/* The first, or the one behind this place, which may be one that somebody has left; NULL: that was the last. */
struct share_member *share_order_next(const struct share_order *o, const struct share_place *after);

#endif
