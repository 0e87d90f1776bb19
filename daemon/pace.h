#ifndef PACE_H
#define PACE_H
#include <stdatomic.h>
#include <stdint.h>

/*
 * What strangers may take of a thread's processor time: a share of the time that passes, in percent, whatever the scheduler thinks of
 * priorities. Work for somebody who turned out to be known is given back. All functions but pace_refund are for that thread alone.
 */
struct pace {
	uint64_t wall_ns, cpu_ns; /* as pace_wait last saw them; 0: never */
	int64_t saved_ns; /* processor time left; less than 0: owed */
	_Atomic uint64_t refunded_ns;
};

/* Processor time left for who comes after a quiet time: a small fleet that joins at once is not held up. */
#define PACE_BURST_NS 250000000
/* Longest time asleep at once: what else the thread serves waits so long. */
#define PACE_SLEEP_NS 1000000000u

/* Processor time of this thread in nanoseconds, to measure work that may have to be refunded. */
uint64_t pace_cpu_ns(void);
/* Any thread: `ns` were not for a stranger. */
void pace_refund(struct pace *p, uint64_t ns);
/* Sleeps until the thread's work is within `percent` of the time since the last call, 100: does not. */
void pace_wait(struct pace *p, uint32_t percent);

#endif
