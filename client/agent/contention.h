#ifndef CONTENTION_H
#define CONTENTION_H
#include <stdbool.h>

/*
 * How many threads the next step should have on a device with other work to do. Threads of one step wait for each other, so where programs
 * outside leave them less than a processor each, fewer are quicker. The kernel says how long threads were ready and had to wait
 * for one (/proc/self/task/TID/schedstat); where it does not, it is always as many as there are. Nothing but time hangs on the answer.
 */
struct contention {
	unsigned most, threads; /* may and should work */
	double looked,
	    waited; /* seconds: when the kernel was asked last, and all waiting until then */
	unsigned calm,
	    patience; /* windows without contention so far, and before one thread more is tried */
	bool raised; /* that one is new */
};

/* `now` is monotonic, here and below. */
void contention_begin(struct contention *c, unsigned most, double now);
/* Between two steps; asks the kernel about thirty times a second. 1 to most. */
unsigned contention_threads(struct contention *c, double now);
/* What it does after a window of time in which the threads together waited for `share` of it. */
unsigned contention_decide(struct contention *c, double share);

#endif
