#ifndef CONTENTION_H
#define CONTENTION_H
#include <stdbool.h>

/*
 * How many threads the next step should have on a device with other work to do. Threads of one step wait for each other, so fewer threads
 * are quicker where other programs keep all processors busy. The kernel tells how long the calling thread was ready and had to wait for a
 * processor (/proc/thread-self/schedstat); where it does not, the answer is always `most`. Only time depends on the answer.
 */
struct contention {
	unsigned most, threads; /* how many threads may work, and how many should */
	double looked,
	    waited; /* seconds: when the kernel was asked last, and all waiting until then */
	unsigned calm,
	    patience; /* windows without contention so far, and before more threads are tried */
	unsigned before; /* `threads` before the last raise */
	bool raised; /* the threads of the last raise are on trial */
};

/* now: monotonic seconds, here and below. Called by the thread that makes the steps. */
void contention_begin(struct contention *c, unsigned most, double now);
/* The number of threads for the next step, 1 to most; called between two steps. Asks the kernel about thirty times a second. */
unsigned contention_threads(struct contention *c, double now);
/* The number of threads after a window of time in which the thread waited for `share` of the time. */
unsigned contention_decide(struct contention *c, double share);

#endif
