#ifndef LOAD_H
#define LOAD_H
#include <stdbool.h>
#include <sys/types.h>

/*
 * How much of the processors others use: the time all were busy, less that of the agent and of all it started. Training on every
 * processor of an idle machine is no load.
 */
struct load_sample {
	double busy, total; /* seconds of all processors since the start of the machine */
	double own; /* of the agent and the processes below it */
};

/* own: the process whose time is our own, with all below it. root: what stands before /proc/stat; "" but in tests. False: it cannot be
 * told. Blocks on /proc. */
bool load_read(struct load_sample *out, pid_t own, const char *root);
/* Percent of all processors; NaN if too little time lies between. Pure. */
double load_others(const struct load_sample *before, const struct load_sample *after);

#define LOAD_LOOKS 2 /* in a row before anything changes */
#define LOAD_FREE 0.75 /* of the most: the machine is free again below that */
struct load_state {
	bool busy;
	bool known; /* the first look decides alone */
	unsigned against; /* looks in a row that speak for a change */
};
/* Do others use too much? NaN changes nothing. Pure. */
bool load_step(struct load_state *s, double percent, double most);

#endif
