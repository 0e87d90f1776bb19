#ifndef CONTENTION_H
#define CONTENTION_H
#include <stdbool.h>

/*
 * How many threads the next step should have on a device with other work to do. Threads of one step wait for each other, so where other
 * programs keep all processors busy fewer are quicker. The kernel says how long the calling thread was ready and had to wait for a
 * processor (/proc/thread-self/schedstat); where it does not, it is always as many as may work. Nothing but time hangs on the answer.
 */
struct contention {
	unsigned most, threads; /* may and should work */
	double looked,
	    waited; /* seconds: when the kernel was asked last, and all waiting until then */
	unsigned calm,
	    patience; /* windows without contention so far, and before more threads are tried */
	unsigned before; /* the last raise */
	bool raised; /* the last of them are on trial */
};

/* `now` is monotonic, here and below; the calling thread is that of the steps. */
void contention_begin(struct contention *c, unsigned most, double now);
/* Between two steps; asks the kernel about thirty times a second. 1 to most. */
unsigned contention_threads(struct contention *c, double now);
/* What it does after a window of time of which the thread waited for `share`. */
unsigned contention_decide(struct contention *c, double share);

#endif
