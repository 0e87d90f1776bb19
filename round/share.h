#ifndef SHARE_H
#define SHARE_H
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

#endif
