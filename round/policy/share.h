#ifndef SHARE_H
#define SHARE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * How jobs of one priority share devices: the job with the least use for its share is served first. Use is device-seconds that halve
 * every SHARE_HALF_LIFE_MS, so that old use no longer counts. All uses decay alike: which of two jobs has less does not change
 * by time alone, and an order of jobs stays right until a job is charged. Times are milliseconds of one monotonic clock.
 *
 * Use is kept as a logarithm, in which decay shifts all values alike: after BOINC's recent estimated credit (client/cpu_sched.cpp), and
 * virtual time in fair queueing (Demers et al. 1989).
 */
#define SHARE_HALF_LIFE_MS 3600000u

struct share_use {
	double
	    level; /* log2 of the use, plus the half-lives since the clock began; -INFINITY: none */
	uint64_t charged_ms; /* when the job was last charged; 0: never */
	double task_seconds; /* how long a task takes, from the last tasks; 0: not known */
};

/* The use of a job for which no device has worked. */
struct share_use share_none(void);
/* Adds device-seconds to the use at now_ms; negative seconds are given back, at most down to no use. */
void share_charge(struct share_use *u, double seconds, uint64_t now_ms);
/* The use that is left at now_ms, in device-seconds. */
double share_seconds(const struct share_use *u, uint64_t now_ms);
/* The key by which jobs of one priority are served, the smallest first. share >= 1. */
double share_key(const struct share_use *u, uint32_t share);
/* Raises a job's key to `key`, if it is below. A job that is new, or comes back, begins at the least used of the others: without use it
 * would get every device until it had as much use as the others had in an hour. */
void share_raise(struct share_use *u, uint32_t share, double key);

/* A task is handed out: charges the expected seconds of a task, so that devices that ask at one moment spread over the jobs. Returns the
 * seconds charged. */
double share_begin(struct share_use *u, uint64_t now_ms);
/* A task has ended after so many seconds: replaces the charge of share_begin by `seconds`. */
void share_end(struct share_use *u, double charged, double seconds, uint64_t now_ms);

/*
 * The order in which jobs are asked for work for a device: by priority, then the job with the least use for its share, of equal jobs the
 * oldest. An array, so that a member moves with two searches and one short move of memory, however many members there are. One thread
 * at a time; members are the caller's and must not move in memory while they are in the order.
 */
#define SHARE_ORDER_MAX 5120

struct share_place {
	int64_t priority;
	double key;
	uint64_t serial; /* rises with each new job, so that no two members have the same */
};

struct share_member {
	struct share_use use;
	int64_t priority; /* the highest first */
	uint32_t share; /* >= 1 */
	uint64_t serial;
	/* The job takes no tasks now: share_order_raise does not measure others by it. */
	bool waits;
	/* Set by the order alone: */
	bool is_in;
	struct share_place at;
};

struct share_order {
	struct share_member *items[SHARE_ORDER_MAX];
	size_t count;
};

/* False if the order is full. */
bool share_order_add(struct share_order *o, struct share_member *m);
/* Does nothing if m is not in the order. */
void share_order_remove(struct share_order *o, struct share_member *m);
/* To be called when use, share or priority of m have changed. Does nothing if m is not in the order. */
void share_order_move(struct share_order *o, struct share_member *m);
/* For a job that is new or comes back: raises its use to the least of the jobs of its priority for which devices have worked in the last
 * half-life. (A job for which no device can work keeps an old use, and is no measure.) */
void share_order_raise(struct share_order *o, struct share_member *m, uint64_t now_ms);
/* The first member (after NULL), or the first behind the place `after`, where no member need be; NULL: there is none. */
struct share_member *share_order_next(const struct share_order *o, const struct share_place *after);

#endif
