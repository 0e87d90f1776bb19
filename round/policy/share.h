#ifndef SHARE_H
#define SHARE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * How jobs of one priority share devices: the one with the least use for its share is served first. Use is device-seconds that halve
 * every SHARE_HALF_LIFE_MS, so that what was long ago counts no more. All uses decay alike: which of two jobs has less does not change
 * by itself, and an order of jobs stays right until one of them is charged. Times are milliseconds of one monotonic clock.
 *
 * Kept as a logarithm, in which decay is a shift of everything: after BOINC's recent estimated credit (client/cpu_sched.cpp), and
 * virtual time in fair queueing (Demers et al. 1989).
 */
#define SHARE_HALF_LIFE_MS 3600000u

struct share_use {
	double
	    level; /* log2 of the use, plus the half-lives since the clock began; -INFINITY: none */
	uint64_t charged_ms; /* when last; 0: never */
	double task_seconds; /* what a task takes, after the last ones; 0: not known */
};

/* A job that nobody worked for. */
struct share_use share_none(void);
/* Device-seconds now; below 0 they are given back, down to none. */
void share_charge(struct share_use *u, double seconds, uint64_t now_ms);
/* What is left of the use, in device-seconds. */
double share_seconds(const struct share_use *u, uint64_t now_ms);
/* What jobs of one priority are served by, the least first. share >= 1. */
double share_key(const struct share_use *u, uint32_t share);
/* Puts a job's key up to this one, if it is below. Who comes new, or back, begins beside the least used of the others and not at
 * none: with none it would have every device until it had caught up with what the others had in an hour. */
void share_raise(struct share_use *u, uint32_t share, double key);

/* A task is handed out: charges beforehand what one takes, so that devices that ask at one moment spread over the jobs. Returns what
 * was charged. */
double share_begin(struct share_use *u, uint64_t now_ms);
/* It has ended, after so many seconds: sets right what share_begin charged. */
void share_end(struct share_use *u, double charged, double seconds, uint64_t now_ms);

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
