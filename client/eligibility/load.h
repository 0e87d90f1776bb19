#ifndef LOAD_H
#define LOAD_H
#include <stdbool.h>
#include <sys/types.h>

/*
 * How much of the processors other programs use: the busy time of all processors, less the time of the agent and of all that it started.
 * Training on every processor of an idle machine is no load.
 */
struct load_sample {
	double busy, total; /* seconds of all processors since the start of the machine */
	double own; /* of the agent and the processes below it */
};

/* own: the process whose time, with that of all below it, is the agent's. root: what stands before /proc/stat; "" but in tests. False: not
 * known. Blocks on /proc. */
bool load_read(struct load_sample *out, pid_t own, const char *root);
/* Percent of all processors; NaN if too little time lies between. Pure. */
double load_others(const struct load_sample *before, const struct load_sample *after);

#define LOAD_LOOKS 2 /* looks in a row that it takes to change `busy` */
#define LOAD_FREE 0.75 /* share of the limit below which a busy machine is free again */
struct load_state {
	bool busy;
	bool known; /* there was a look, which decided alone */
	unsigned against; /* looks in a row that speak for a change */
};
/* Do others use more of the processors than `most` percent? A percent of NaN changes nothing. Pure. */
bool load_step(struct load_state *s, double percent, double most);

#endif
